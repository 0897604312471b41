"""The first part of the page: the verdicts, the table of metrics, and the charts over all metrics."""

from __future__ import annotations

from collections.abc import Sequence

from kantan_agents.lab.evaluation.comparing.comparison import Comparison, MetricComparison
from kantan_agents.lab.evaluation.comparing.number_texts import (
    difference_text,
    interval_text,
    p_text,
    score_text,
)
from kantan_agents.lab.evaluation.report.charts.forest import ForestRow, forest_plot
from kantan_agents.lab.evaluation.report.charts.outcomes import OutcomeRow, outcome_bars
from kantan_agents.lab.evaluation.report.markup import inline, text
from kantan_agents.lab.evaluation.report.metric_data import MARKS, MetricData

_UNKNOWN = "&ndash;"


def overview(comparison: Comparison, data: Sequence[MetricData]) -> str:
    """Return the verdicts, the table and the charts."""
    verdicts = "\n".join(
        f'<li class="{_class(one)}"><span class="mark" aria-hidden="true">{MARKS[one.verdict]}</span> '
        f"{text(one.text)}</li>"
        for one in comparison.metrics
        if one.is_notable
    )
    return f"""<section aria-labelledby="verdicts">
<h2 id="verdicts">Verdicts</h2>
<p class="note">Each verdict is about {inline(comparison.b)}, measured against {inline(comparison.a)}.</p>
<ul class="verdicts">
{verdicts}
</ul>
</section>
<section aria-labelledby="metrics">
<h2 id="metrics">Metrics</h2>
{_table(comparison, data)}
</section>
{_forests(comparison, data)}<section aria-labelledby="outcomes">
<h2 id="outcomes">Better, equal and worse cases</h2>
{_outcomes(comparison, data)}
</section>
"""


def verdict_text(one: MetricComparison) -> str:
    """Return a verdict with its sign."""
    mark = f'<span class="mark" aria-hidden="true">{MARKS[one.verdict]}</span>'
    return f'<span class="{_class(one)}">{mark} {one.verdict}</span>'


def _class(one: MetricComparison) -> str:
    return one.verdict.replace(" ", "-")


def _table(comparison: Comparison, data: Sequence[MetricData]) -> str:
    level = f"{comparison.level:.0%}"
    rows = "\n".join(_row(number, one.compared) for number, one in enumerate(data))
    names = [inline(comparison.a), inline(comparison.b)]
    columns = ["metric", *names, "difference", f"{level} interval", "p", "cases", "verdict"]
    heads = "".join(f'<th scope="col">{column}</th>' for column in columns)
    return f"""<div class="wide" role="region" aria-label="Table of metrics" tabindex="0">
<table class="numbers">
<caption>Means over the cases. The difference is {inline(comparison.b)} minus {inline(comparison.a)}, with its
{level} interval. The p values are adjusted for the number of metrics (Holm).</caption>
<thead><tr>{heads}</tr></thead>
<tbody>
{rows}
</tbody>
</table>
</div>"""


def _row(number: int, one: MetricComparison) -> str:
    cells = [
        score_text(one.mean_a),
        score_text(one.mean_b),
        difference_text(one.difference),
        interval_text(one.low, one.high),
        p_text(one.p_adjusted),
        f"{one.cases:,}",
    ]
    shown = "".join(f"<td>{text(value) or _UNKNOWN}</td>" for value in cells)
    name = inline(one.metric)
    if one.is_notable:
        name = f'<a href="#metric-{number}">{name}</a>'
    note = f'<br><span class="note">{one.better} is better</span>'
    return f'<tr><th scope="row">{name}{note}</th>{shown}<td class="verdict">{verdict_text(one)}</td></tr>'


def _forests(comparison: Comparison, data: Sequence[MetricData]) -> str:
    """Return the plots of differences: one of scores, one of other metrics as a share of their mean."""
    data = [one for one in data if one.compared.is_notable]
    scores = [_forest_row(one.compared, 1.0) for one in data if one.is_score]
    others = [
        _forest_row(one.compared, abs(one.compared.mean_a) / 100)
        for one in data
        if not one.is_score and one.compared.mean_a
    ]
    parts = []
    level = f"{comparison.level:.0%}"
    for rows, unit, what in ((scores, "", "of scores"), (others, "%", "relative to the mean")):
        known = [row for row in rows if row is not None]
        if known:
            title = f"Differences {what}, with {level} intervals"
            parts.append(f"<h3>{title}</h3>\n{forest_plot(title, known, unit)}")
    if not parts:
        return ""
    charts = "\n".join(parts)
    return f"""<section aria-labelledby="differences">
<h2 id="differences">Differences</h2>
<p class="note">At the line at 0, both are equal. &#9650; better, &#9660; worse, &#9679; cannot tell.</p>
{charts}
</section>
"""


def _forest_row(one: MetricComparison, unit: float) -> ForestRow | None:
    if one.difference is None:
        return None
    low, high = (None, None) if one.low is None or one.high is None else (one.low / unit, one.high / unit)
    return ForestRow(one.metric, f"{one.better} is better", one.difference / unit, low, high, one.verdict)


def _outcomes(comparison: Comparison, data: Sequence[MetricData]) -> str:
    rows = [
        OutcomeRow(
            one.compared.metric, len(one.compared.wins), len(one.compared.ties), len(one.compared.losses)
        )
        for one in data
        if one.compared.cases and one.compared.is_notable
    ]
    title = f"In how many cases {comparison.b} is better, equal or worse"
    return outcome_bars(title, rows)
