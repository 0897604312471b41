"""Puts the page of a comparison together."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from typing import Final

from kantan_agents.lab.evaluation.comparing.comparison import Comparison
from kantan_agents.lab.evaluation.dataset.case import Case
from kantan_agents.lab.evaluation.experiment.results import VariantResults
from kantan_agents.lab.evaluation.report.markup import inline, text
from kantan_agents.lab.evaluation.report.metric_data import metric_data
from kantan_agents.lab.evaluation.report.metric_section import metric_section
from kantan_agents.lab.evaluation.report.overview import overview

# Even if a text got into the page as markup, nothing could run or be loaded.
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def comparison_page(
    comparison: Comparison, a: VariantResults, b: VariantResults, cases: Iterable[Case]
) -> str:
    """Return the whole page.

    Args:
        comparison: The comparison of ``a`` and ``b``.
        a: The results of the one variant.
        b: The results of the other.
        cases: The cases, for their inputs and expected outputs.
    """
    data = metric_data(comparison, a, b)
    known = {(case.id, case.hash): case for case in cases}
    sections = [
        metric_section(number, one, known) for number, one in enumerate(data) if one.compared.is_notable
    ]
    title = f"{text(comparison.a)} and {text(comparison.b)} compared"
    style = files(__package__).joinpath("style.css").read_text(encoding="utf-8")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<main>
<header>
<h1>{inline(comparison.a)} <span class="versus">compared with</span> {inline(comparison.b)}</h1>
{_facts(comparison, a, b)}
</header>
{overview(comparison, data)}
{"".join(sections)}</main>
</body>
</html>
"""


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
