"""A chart of the difference of each metric with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from kantan_agents.lab.evaluation.comparing.comparison import Verdict
from kantan_agents.lab.evaluation.comparing.number_texts import difference_text
from kantan_agents.lab.evaluation.report.charts.drawing import LABEL, WIDTH, Axis, drawing, label, mark
from kantan_agents.lab.evaluation.report.markup import text

_ROW: Final = 40
_TOP: Final = 8
_VALUES: Final = 240


@attrs.frozen
class ForestRow:
    """A difference with its interval; ``note`` states which direction is better."""

    label: str
    note: str
    difference: float
    low: float | None
    high: float | None
    verdict: Verdict

    def shown(self, unit: str) -> str:
        """Return the difference and its interval as a string."""
        shown = f"{difference_text(self.difference)}{unit}"
        if self.low is None or self.high is None:
            return shown
        return f"{shown} ({difference_text(self.low)}{unit} to {difference_text(self.high)}{unit})"


def forest_plot(title: str, rows: Sequence[ForestRow], unit: str) -> str:
    """Return the chart; ``unit`` follows the numbers, such as ``"%"``."""
    bounds = [bound for row in rows for bound in (row.low, row.high) if bound is not None]
    axis = Axis.over([0.0, *bounds, *(row.difference for row in rows)], LABEL, WIDTH - _VALUES)
    bottom = _TOP + _ROW * len(rows)
    zero = f'<line class="zero" x1="{axis.at(0):.1f}" y1="{_TOP}" x2="{axis.at(0):.1f}" y2="{bottom}"/>'
    drawn = [_row(row, axis, _TOP + _ROW * (number + 0.5), unit) for number, row in enumerate(rows)]
    ticks = axis.drawn(_TOP, bottom, lambda value: f"{difference_text(value)}{unit}")
    said = "; ".join(f"{row.label}: {row.shown(unit)}, {row.verdict}" for row in rows)
    return drawing(title, said, bottom + 26, f"{ticks}{zero}{''.join(drawn)}")


def _row(row: ForestRow, axis: Axis, y: float, unit: str) -> str:
    style = row.verdict.replace(" ", "-")
    interval = ""
    if row.low is not None and row.high is not None:
        low, high = axis.at(row.low), axis.at(row.high)
        path = f"M{low:.1f} {y - 5:.1f}v10M{low:.1f} {y:.1f}H{high:.1f}M{high:.1f} {y - 5:.1f}v10"
        interval = f'<path class="interval {style}" d="{path}"/>'
    value = f'<text class="value" x="{WIDTH - _VALUES + 14}" y="{y + 4:.1f}">{text(row.shown(unit))}</text>'
    return f"{label(row.label, y, row.note)}{interval}{mark(row.verdict, axis.at(row.difference), y)}{value}"
