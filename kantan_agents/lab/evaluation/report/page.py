"""The page of a comparison."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Final

from kantan_agents.lab.evaluation.comparing.comparison import Comparison, MetricComparison
from kantan_agents.lab.evaluation.comparing.number_texts import (
    difference_text,
    interval_text,
    p_text,
    score_text,
    sentence,
)
from kantan_agents.lab.evaluation.dataset.case import Case
from kantan_agents.lab.evaluation.experiment.results import VariantResults
from kantan_agents.lab.evaluation.report.charts.forest import ForestRow, forest_plot
from kantan_agents.lab.evaluation.report.charts.outcomes import OutcomeRow, outcome_bars
from kantan_agents.lab.evaluation.report.document import document, write_page
from kantan_agents.lab.evaluation.report.markup import inline, text
from kantan_agents.lab.evaluation.report.metric_data import MARKS, MetricData, metric_data
from kantan_agents.lab.evaluation.report.metric_section import metric_section

_UNKNOWN: Final = "&ndash;"


def write_report(
    comparison: Comparison,
    a: VariantResults,
    b: VariantResults,
    path: str | os.PathLike[str],
    *,
    cases: Iterable[Case] = (),
) -> None:
    """Write a comparison as one HTML page, replacing an existing file.

        comparison = compare(evaluation["v1"], evaluation["v2"])
        write_report(comparison, evaluation["v1"], evaluation["v2"], "report.html", cases=evaluation.cases)

    The page has verdicts, charts, and for each metric the cases that changed with both outputs. It needs no
    network and contains no script. The same arguments give the same bytes. Inputs and outputs are in clear
    text, so only the owner can read a new file; an existing one retains its mode.

    Args:
        comparison: The comparison of ``a`` and ``b``.
        a: The results of the baseline.
        b: The results of the other variant.
        path: The file.
        cases: The cases, for their inputs and expected outputs: ``evaluation.cases``, or the dataset.

    Raises:
        FileArgumentError: E79, the file cannot be written.
    """
    write_page(comparison_page(comparison, a, b, cases), path)


def comparison_page(
    comparison: Comparison, a: VariantResults, b: VariantResults, cases: Iterable[Case]
) -> str:
    """Return the whole page."""
    data = metric_data(comparison, a, b)
    known = {(case.id, case.hash): case for case in cases}
    sections = [
        metric_section(number, one, known) for number, one in enumerate(data) if one.compared.is_notable
    ]
    title = f"{text(comparison.a)} and {text(comparison.b)} compared"
    names = f'{inline(comparison.a)} <span class="versus">compared with</span> {inline(comparison.b)}'
    head = f"<h1>{names}</h1>\n{_facts(comparison, a, b)}"
    return document(title, head, f"{_overview(comparison, data)}\n{''.join(sections)}")


def _facts(comparison: Comparison, a: VariantResults, b: VariantResults) -> str:
    evaluations = list(dict.fromkeys((a.evaluation, b.evaluation)))
    facts = [
        ("evaluation" if len(evaluations) == 1 else "evaluations", ", ".join(map(inline, evaluations))),
        ("cases of both", f"{comparison.cases:,}"),
    ]
    if comparison.unpaired:
        facts.append(("cases of one only, left out", f"{len(comparison.unpaired):,}"))
    for name, count in comparison.failed.items():
        if count:
            facts.append((f"failed runs of {inline(name)}", f"{count:,}"))
    listed = "".join(f"<div><dt>{label}</dt><dd>{value}</dd></div>" for label, value in facts)
    return f'<dl class="facts">{listed}</dl>'


def _overview(comparison: Comparison, data: Sequence[MetricData]) -> str:
    verdicts = "\n".join(
        f'<li class="{class_of(one)}"><span class="mark" aria-hidden="true">{MARKS[one.verdict]}</span> '
        f"{text(one.text)}</li>"
        for one in comparison.metrics
        if one.is_notable
    )
    return f"""<section aria-labelledby="verdicts">
<h2 id="verdicts">Verdicts</h2>
<p class="note">Each verdict is about {inline(comparison.b)}, measured against {inline(comparison.a)}.
{text(sentence(comparison.note))}</p>
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
    return f'<span class="{class_of(one)}">{mark} {one.verdict}</span>'


def class_of(one: MetricComparison) -> str:
    """Return the CSS class of a verdict."""
    return one.verdict.replace(" ", "-")


def _table(comparison: Comparison, data: Sequence[MetricData]) -> str:
    rows = "\n".join(table_row(number, one.compared) for number, one in enumerate(data))
    return table_of(rows, inline(comparison.a), inline(comparison.b), comparison.level)


def table_of(rows: str, a: str, b: str, level: float) -> str:
    """Return the table; all arguments are markup."""
    columns = ["metric", a, b, "difference", f"{level:.0%} interval", "p", "cases", "verdict"]
    heads = "".join(f'<th scope="col">{column}</th>' for column in columns)
    return f"""<div class="wide" role="region" aria-label="Table of metrics" tabindex="0">
<table class="numbers">
<caption>Means over the cases. The difference is {b} minus {a}, with its {level:.0%} interval. The p values
are adjusted for the number of rows (Holm).</caption>
<thead><tr>{heads}</tr></thead>
<tbody>
{rows}
</tbody>
</table>
</div>"""


def table_row(number: int, one: MetricComparison, *, of: str = "") -> str:
    """Return the row of a metric, which links to its section."""
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
    variant = f": {inline(of)}" if of else ""
    note = f'{variant}<br><span class="note">{one.better} is better</span>'
    return f'<tr><th scope="row">{name}{note}</th>{shown}<td class="verdict">{verdict_text(one)}</td></tr>'


def _forests(comparison: Comparison, data: Sequence[MetricData]) -> str:
    """Return two charts: scores, and other metrics as a share of their mean."""
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
