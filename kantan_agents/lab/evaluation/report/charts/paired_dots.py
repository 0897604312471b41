"""A chart of cases as two connected dots, one for each variant."""

from __future__ import annotations

from typing import Final

from kantan_agents.lab.evaluation.comparing.number_texts import score_text
from kantan_agents.lab.evaluation.report.charts.drawing import LABEL, WIDTH, Axis, drawing, label
from kantan_agents.lab.evaluation.report.markup import inline
from kantan_agents.lab.evaluation.report.metric_data import MetricData

_ROW: Final = 20
_TOP: Final = 8
_MOST: Final = 40
_Row = tuple[str, float, float]
"""A case and its two values."""


def paired_dots(data: MetricData) -> str:
    """Return the chart, of many cases with the largest changes."""
    one = data.compared
    rows = sorted(
        zip(data.values.cases, data.values.a, data.values.b, strict=True),
        key=lambda row: (-abs(row[2] - row[1]), row[0]),
    )
    # From the largest gain to the largest loss, whichever direction is better.
    sign = 1 if one.better == "higher" else -1
    shown = sorted(rows[:_MOST], key=lambda row: (-sign * (row[2] - row[1]), row[0]))
    axis = Axis.over([value for _, a, b in shown for value in (a, b)], LABEL, WIDTH - 16)
    bottom = _TOP + _ROW * len(shown)
    drawn = [_row(row, axis, _TOP + _ROW * (number + 0.5), sign) for number, row in enumerate(shown)]
    title = f"{one.metric} of each case with {one.a} and {one.b}"
    said = f"{len(one.wins)} cases are better, {len(one.ties)} are equal, {len(one.losses)} are worse."
    which = "" if len(rows) == len(shown) else f" The {len(shown)} of {len(rows):,} cases that changed most."
    legend = f"Each row is a case: &#9675; {inline(one.a)}, &#9670; {inline(one.b)}."
    chart = drawing(title, said, bottom + 26, axis.drawn(_TOP, bottom, score_text) + "".join(drawn))
    return f'<p class="note">{legend} A dashed line leads to a worse value.{which}</p>\n{chart}'


def _row(row: _Row, axis: Axis, y: float, sign: int) -> str:
    name, before, after = row
    x, z = axis.at(before), axis.at(after)
    gain = sign * (after - before)
    style = "better" if gain > 0 else "worse" if gain < 0 else "equal"
    ends = f'x1="{x:.1f}" y1="{y:.1f}" x2="{z:.1f}" y2="{y:.1f}"'
    line = f'<line class="pair {style}" {ends}/>' if gain else ""
    first = f'<circle class="first" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>'
    points = f"{z - 5:.1f},{y:.1f} {z:.1f},{y - 5:.1f} {z + 5:.1f},{y:.1f} {z:.1f},{y + 5:.1f}"
    second = f'<polygon class="second" points="{points}"/>'
    return f"{label(name, y)}{line}{first}{second}"
