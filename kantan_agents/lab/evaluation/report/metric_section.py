"""The part of the page about one metric: its chart, and the cases that changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kantan_agents.lab.evaluation.comparing.number_texts import number_text
from kantan_agents.lab.evaluation.comparing.paired_values import PairedValues
from kantan_agents.lab.evaluation.dataset.case import Case
from kantan_agents.lab.evaluation.report.changed_case import changed_case
from kantan_agents.lab.evaluation.report.charts.paired_dots import paired_dots
from kantan_agents.lab.evaluation.report.markup import inline, text
from kantan_agents.lab.evaluation.report.metric_data import MetricData

_MOST: Final = 50
"""So many changed cases are shown of each metric."""


def metric_section(number: int, data: MetricData, cases: Mapping[tuple[str, str], Case]) -> str:
    """Return the part about one metric.

    Args:
        number: Its place among the metrics, for links.
        data: The metric.
        cases: The cases by id and hash, as far as they are known.
    """
    one = data.compared
    chart = ""
    if one.cases:
        chart = _fourfold(data) if one.is_binary else paired_dots(data)
    return f"""<section aria-labelledby="metric-{number}">
<h2 id="metric-{number}">{inline(one.metric)}</h2>
<p>{text(one.text)}</p>
{_detectable(data)}{chart}
{_changed(data, cases)}</section>
"""


def _detectable(data: MetricData) -> str:
    one = data.compared
    if one.detectable is None or one.verdict != "cannot tell":
        return ""
    size = number_text(one.detectable, 2)
    return f'<p class="note">A true difference of {size} would have been found four times out of five.</p>\n'


def _fourfold(data: MetricData) -> str:
    """Return how often both, one or none of the variants have a yes; the table of McNemar's test."""
    one = data.compared
    a, b = inline(one.a), inline(one.b)
    yes_yes, yes_no, no_yes, no_no = (_count(data.values, pair) for pair in ((1, 1), (1, 0), (0, 1), (0, 0)))
    return f"""<table class="fourfold">
<caption>Cases by their answer with both variants; those in bold flipped</caption>
<thead><tr><td></td><th scope="col">{b}: yes</th><th scope="col">{b}: no</th></tr></thead>
<tbody><tr><th scope="row">{a}: yes</th><td>{yes_yes:,}</td><td><strong>{yes_no:,}</strong></td></tr>
<tr><th scope="row">{a}: no</th><td><strong>{no_yes:,}</strong></td><td>{no_no:,}</td></tr></tbody>
</table>"""


def _count(values: PairedValues, wanted: tuple[int, int]) -> int:
    return sum((before, after) == wanted for before, after in zip(values.a, values.b, strict=True))


def _changed(data: MetricData, cases: Mapping[tuple[str, str], Case]) -> str:
    if not data.changed:
        return ""
    is_binary = data.compared.is_binary
    title = "Cases that flipped" if is_binary else "Cases that changed, the largest change first"
    shown = "".join(changed_case(one, data.compared, cases) for one in data.changed[:_MOST])
    left = len(data.changed) - _MOST
    more = f'<p class="note">{left:,} more cases are not shown.</p>\n' if left > 0 else ""
    return f"<h3>{title}</h3>\n{shown}{more}"
