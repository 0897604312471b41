"""The section of a metric on the page."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kantan_agents.lab.evaluation.comparing.changed_cases import ChangedCase
from kantan_agents.lab.evaluation.comparing.comparison import MetricComparison
from kantan_agents.lab.evaluation.comparing.number_texts import number_text, score_text
from kantan_agents.lab.evaluation.comparing.paired_values import PairedValues
from kantan_agents.lab.evaluation.dataset.case import Case
from kantan_agents.lab.evaluation.experiment.results import CaseResult
from kantan_agents.lab.evaluation.report.charts.paired_dots import paired_dots
from kantan_agents.lab.evaluation.report.markup import block, inline, text
from kantan_agents.lab.evaluation.report.metric_data import MARKS, MetricData
from kantan_agents.lab.evaluation.scores import Score

_MOST: Final = 50
_MOST_REPEATS: Final = 3


def metric_section(
    number: int, data: MetricData, cases: Mapping[tuple[str, str], Case], *, of: str = ""
) -> str:
    """Return the section of a metric; ``number`` is for links."""
    one = data.compared
    variant = f": {inline(of)}" if of else ""
    chart = ""
    if one.cases:
        chart = _fourfold(data) if one.is_binary else paired_dots(data)
    return f"""<section aria-labelledby="metric-{number}">
<h2 id="metric-{number}">{inline(one.metric)}{variant}</h2>
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
    """Return the table of McNemar's test."""
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
    shown = "".join(_changed_case(one, data.compared, cases) for one in data.changed[:_MOST])
    left = len(data.changed) - _MOST
    more = f'<p class="note">{left:,} more cases are not shown.</p>\n' if left > 0 else ""
    return f"<h3>{title}</h3>\n{shown}{more}"


def _changed_case(one: ChangedCase, compared: MetricComparison, cases: Mapping[tuple[str, str], Case]) -> str:
    case = cases.get((one.case_id, one.runs_a[0].case_hash))
    values = f"{score_text(one.value_a)} &rarr; {score_text(one.value_b)}"
    mark = f'<span class="mark" aria-hidden="true">{MARKS[one.change]}</span>'
    change = f'<span class="{one.change}">{mark} {one.change}</span>'
    heads = "".join(f'<th scope="col">{inline(name)}</th>' for name in (compared.a, compared.b))
    rows = (("output", _outputs), ("scores", _scores), ("trace", _traces))
    body = "\n".join(
        f'<tr><th scope="row">{label}</th><td>{show(one.runs_a)}</td><td>{show(one.runs_b)}</td></tr>'
        for label, show in rows
    )
    return f"""<article>
<h4>{change} {inline(one.case_id)} <span class="note">{values}</span></h4>
{_given(case)}<table class="sides">
<thead><tr><td></td>{heads}</tr></thead>
<tbody>
{body}
</tbody>
</table>
</article>
"""


def _given(case: Case | None) -> str:
    if case is None:
        return ""
    parts = [("input", case.whole_input)]
    if case.expected is not None:
        parts.append(("expected", case.expected))
    shown = "".join(f"<dt>{label}</dt><dd>{block(_as_text(value))}</dd>" for label, value in parts)
    return f'<dl class="given">{shown}</dl>\n'


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2, default=str)


def _outputs(runs: Sequence[CaseResult]) -> str:
    return _each(runs, lambda run: block(_as_text(run.output)) if run.error is None else _error(run.error))


def _error(error: str) -> str:
    return f'<p class="worse">failed</p>{block(error)}'


def _scores(runs: Sequence[CaseResult]) -> str:
    def show(run: CaseResult) -> str:
        items = "".join(f"<li>{_score(metric, score)}</li>" for metric, score in run.scores.items())
        return f"<ul>{items}</ul>" if items else "none"

    return _each(runs, show)


def _score(metric: str, score: Score) -> str:
    value = "failed" if score.value is None else score_text(score.value)
    said = [one for one in (score.label, score.comment, score.error) if one]
    notes = "".join(f'<br><span class="note">{text(one)}</span>' for one in said)
    return f"{inline(metric)}: <strong>{value}</strong>{notes}"


def _traces(runs: Sequence[CaseResult]) -> str:
    def show(run: CaseResult) -> str:
        if run.trace_id is None:
            return "not recorded"
        return f"<code>kantan-agents traces show {text(run.trace_id)}</code>"

    return _each(runs, show)


def _each(runs: Sequence[CaseResult], show: Callable[[CaseResult], str]) -> str:
    if len(runs) == 1:
        return show(runs[0])
    shown = "".join(f"<li>{show(run)}</li>" for run in runs[:_MOST_REPEATS])
    left = len(runs) - _MOST_REPEATS
    more = f'<p class="note">{left} more repeats</p>' if left > 0 else ""
    return f"<ol>{shown}</ol>{more}"
