"""A chart of the cases of each metric that are better, equal or worse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from kantan_agents.lab.evaluation.report.charts.drawing import LABEL, WIDTH, drawing, label

_ROW: Final = 36
_BAR: Final = 20
_TEXT: Final = 240
# Stripes distinguish worse cases from better ones without colors too.
_STRIPES: Final = (
    '<defs><pattern id="stripes" width="6" height="6" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect class="loss" width="6" height="6"/>'
    '<rect class="stripe" width="2" height="6"/></pattern></defs>'
)


@attrs.frozen
class OutcomeRow:
    """The numbers of better, equal and worse cases of a metric."""

    label: str
    wins: int
    ties: int
    losses: int

    @property
    def shown(self) -> str:
        """The numbers as a string."""
        return f"{self.wins:,} better, {self.ties:,} equal, {self.losses:,} worse"


def outcome_bars(title: str, rows: Sequence[OutcomeRow]) -> str:
    """Return one bar for each metric, split by outcome."""
    drawn = [_row(row, _ROW * (number + 0.5)) for number, row in enumerate(rows)]
    said = "; ".join(f"{row.label}: {row.shown}" for row in rows)
    return drawing(title, said, _ROW * len(rows) + 4, f"{_STRIPES}{''.join(drawn)}")


def _row(row: OutcomeRow, y: float) -> str:
    total = row.wins + row.ties + row.losses
    scale = (WIDTH - LABEL - _TEXT) / total
    parts, x = [], float(LABEL)
    fills = {"tie": 'class="tie"', "win": 'class="win"', "loss": 'fill="url(#stripes)"'}
    for outcome, count in (("win", row.wins), ("tie", row.ties), ("loss", row.losses)):
        width = count * scale
        if count:
            place = f'x="{x:.1f}" y="{y - _BAR / 2:.1f}" width="{width:.1f}" height="{_BAR}"'
            parts.append(f"<rect {fills[outcome]} {place}/>")
        x += width
    value = f'<text class="value" x="{WIDTH - _TEXT + 14}" y="{y + 4:.1f}">{row.shown}</text>'
    return f"{label(row.label, y)}{''.join(parts)}{value}"
