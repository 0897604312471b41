"""The page of several variants, each compared with one control."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation.comparing.comparison import MetricComparison
from kantan_agents.lab.evaluation.comparing.number_texts import sentence
from kantan_agents.lab.evaluation.comparing.several_variants import Comparisons
from kantan_agents.lab.evaluation.dataset.case import Case
from kantan_agents.lab.evaluation.experiment.results import VariantResults
from kantan_agents.lab.evaluation.report.charts.forest import ForestRow, forest_plot
from kantan_agents.lab.evaluation.report.document import document, write_page
from kantan_agents.lab.evaluation.report.markup import inline, text
from kantan_agents.lab.evaluation.report.metric_data import MARKS, metric_data
from kantan_agents.lab.evaluation.report.metric_section import metric_section
from kantan_agents.lab.evaluation.report.page import class_of, table_of, table_row


def write_report_of_all(
    comparisons: Comparisons,
    results: Sequence[VariantResults],
    path: str | os.PathLike[str],
    *,
    cases: Iterable[Case] = (),
) -> None:
    """Write the comparisons of several variants with one control as one HTML page.

        results = [evaluation[name] for name in evaluation.variants]
        write_report_of_all(compare_all(*results), results, "report.html", cases=evaluation.cases)

    The page is like the page of ``write_report``, with the verdicts of all variants, which have one
    correction.

    Args:
        comparisons: The comparisons of these results.
        results: The results of the control, and of the others in the same order.
        path: The file; an existing one is replaced.
        cases: As for ``write_report``.

    Raises:
        FileArgumentError: E79, the file cannot be written.
        InvalidOptionError: E75, there are not as many results as variants.
    """
    if len(results) != len(comparisons) + 1:
        reason = f"must be those of the control and of {len(comparisons)} variants, not {len(results)}"
        raise InvalidOptionError(option="results", reason=reason)
    write_page(page_of_all(comparisons, results, cases), path)


def page_of_all(comparisons: Comparisons, results: Sequence[VariantResults], cases: Iterable[Case]) -> str:
    """Return the whole page."""
    known = {(case.id, case.hash): case for case in cases}
    rows: list[tuple[str, str]] = []
    sections: list[str] = []
    for comparison, other in zip(comparisons, results[1:], strict=True):
        for one in metric_data(comparison, results[0], other):
            number = len(rows)
            rows.append((one.compared.metric, table_row(number, one.compared, of=comparison.b)))
            if one.compared.is_notable:
                sections.append(metric_section(number, one, known, of=comparison.b))
    # By metric, so that its variants are adjacent.
    metrics = dict.fromkeys(metric for metric, _ in rows)
    ordered = "\n".join(row for wanted in metrics for metric, row in rows if metric == wanted)
    control = inline(comparisons.control)
    others = ", ".join(map(inline, comparisons.variants))
    title = f"{text(', '.join(comparisons.variants))} compared with {text(comparisons.control)}"
    evaluations = ", ".join(inline(name) for name in dict.fromkeys(one.evaluation for one in results))
    counts = ", ".join(dict.fromkeys(f"{one.cases:,}" for one in comparisons))
    head = f"""<h1>{others} <span class="versus">compared with</span> {control}</h1>
<dl class="facts"><div><dt>evaluations</dt><dd>{evaluations}</dd></div>
<div><dt>cases of both</dt><dd>{counts}</dd></div>{_failed(comparisons)}</dl>"""
    body = f"""<section aria-labelledby="verdicts">
<h2 id="verdicts">Verdicts</h2>
<p class="note">Each verdict is measured against {control}. {text(sentence(comparisons.note))}</p>
<ul class="verdicts">
{_verdicts(comparisons)}
</ul>
</section>
<section aria-labelledby="metrics">
<h2 id="metrics">Metrics</h2>
{table_of(ordered, control, "variant", comparisons.level)}
</section>
{_forests(comparisons)}{"".join(sections)}"""
    return document(title, head, body)


def _failed(comparisons: Comparisons) -> str:
    failed = {name: count for one in comparisons for name, count in one.failed.items()}
    facts = [(f"failed runs of {inline(name)}", count) for name, count in failed.items()]
    facts += [
        (f"cases of {inline(one.a)} or {inline(one.b)} only, left out", len(one.unpaired))
        for one in comparisons
    ]
    return "".join(f"<div><dt>{label}</dt><dd>{count:,}</dd></div>" for label, count in facts if count)


def _verdicts(comparisons: Comparisons) -> str:
    return "\n".join(
        f'<li class="{class_of(one)}"><span class="mark" aria-hidden="true">{MARKS[one.verdict]}</span> '
        f"{text(one.text_of_variant)}</li>"
        for one in comparisons.metrics
        if one.is_notable
    )


def _forests(comparisons: Comparisons) -> str:
    """Return a chart for each metric, with a row for each variant."""
    plots = []
    for metric in dict.fromkeys(one.metric for one in comparisons.metrics if one.is_notable):
        rows = [_forest_row(one) for one in comparisons.metrics if one.metric == metric]
        shown = [row for row in rows if row is not None]
        if shown:
            title = f"Differences of {metric}, with {comparisons.level:.0%} intervals"
            plots.append(f"<h3>{inline(metric)}</h3>\n{forest_plot(title, shown, '')}")
    if not plots:
        return ""
    charts = "\n".join(plots)
    return f"""<section aria-labelledby="differences">
<h2 id="differences">Differences</h2>
<p class="note">At the line at 0, a variant equals {inline(comparisons.control)}. &#9650; better,
&#9660; worse, &#9679; cannot tell.</p>
{charts}
</section>
"""


def _forest_row(one: MetricComparison) -> ForestRow | None:
    if one.difference is None:
        return None
    return ForestRow(one.b, f"{one.better} is better", one.difference, one.low, one.high, one.verdict)
