"""``eval show``: prints an evaluation and its runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import attrs
from rich.text import Text

from kantan_agents.cli.eval.find_variants import find_evaluation
from kantan_agents.cli.eval.show_evaluation import show_evaluation
from kantan_agents.cli.terminal.console import ACCENT, BAD, LABEL, plain, wide_terminal
from kantan_agents.cli.terminal.output_options import FormOptions
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.cli.terminal.rows import Column, cell, line_width, print_lines, row_lines
from kantan_agents.cli.terminal.show_quantities import count_text
from kantan_agents.cli.traces.open_store import open_store
from kantan_agents.cli.traces.records import EMPTY, short_id
from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation import CaseResult, Evaluation, Score
from kantan_agents.lab.evaluation.comparing.number_texts import score_text
from kantan_agents.lab.evaluation.comparing.paired_values import better_of
from kantan_agents.lab.evaluation.experiment.results import rows_of
from kantan_agents.lab.evaluation.report.markdown import markdown_of_evaluation
from kantan_agents.lab.evaluation.report.variant_table import passes_of
from kantan_agents.lab.experiment.flat_rows import csv_of
from kantan_agents.support.nearest import nearest

_PASSING: Final = 0.5


@attrs.frozen
class WantedRuns:
    """A selection; ``failed`` includes failed and low scores."""

    failed: bool
    metric: str | None
    limit: int | None


def show_runs(path: Path, name: str, wanted: WantedRuns, form: FormOptions) -> None:
    """Print an evaluation and its runs."""
    evaluation = find_evaluation(open_store(path), name)
    metrics = _metrics(evaluation, wanted.metric)
    chosen = _chosen(evaluation, metrics, wanted)
    shown = chosen[: wanted.limit]
    found = _ShownRuns(evaluation, shown, has_more=len(chosen) > len(shown))
    if form.print(found, found.to_dict):
        return
    show_evaluation(evaluation)
    console = wide_terminal()
    console.print()
    if not shown:
        console.print(plain("No run to show.", LABEL))
        return
    width = line_width(console)
    rows = [_row(one, metrics, in_pipe=width is None) for one in shown]
    print_lines(console, row_lines(_columns(metrics), rows, width))
    if len(chosen) > len(shown):
        more = f"{count_text(len(chosen) - len(shown))} more with --limit {len(chosen)}"
        console.print(plain(more, LABEL))


@attrs.frozen
class _ShownRuns:
    """Runs of an evaluation; as Markdown, the evaluation without them."""

    evaluation: Evaluation
    runs: Sequence[CaseResult]
    has_more: bool = attrs.field(kw_only=True)

    def to_csv(self) -> str:
        return csv_of(rows_of(self.runs))

    def to_markdown(self) -> str:
        return markdown_of_evaluation(self.evaluation)

    def to_dict(self) -> dict[str, Any]:
        runs = [one.to_dict() for one in self.runs]
        passes = [one.to_dict() for one in passes_of(self.evaluation)]
        more = {"passes_all": passes, "has_more": self.has_more}
        return {**self.evaluation.to_dict(), "results": runs, **more}


def _metrics(evaluation: Evaluation, metric: str | None) -> list[str]:
    known = list(dict.fromkeys(name for one in evaluation.results for name in one.scores))
    if metric is None:
        return known
    if metric not in known:
        near = nearest(metric, known)
        hint = f"did you mean {near!r}?" if near else f"there are {', '.join(known) or 'none'}"
        raise InvalidOptionError(option="--metric", reason=f"{evaluation.name!r} has no {metric!r}; {hint}")
    return [metric]


def _chosen(evaluation: Evaluation, metrics: Sequence[str], wanted: WantedRuns) -> list[CaseResult]:
    lower = {name for name in metrics if better_of(name, evaluation[evaluation.variants[0]]) == "lower"}
    found = [
        one
        for one in evaluation.results
        if not wanted.failed or _is_failing(one, set(metrics) - lower, metrics)
    ]
    if wanted.metric is None:
        return found
    sign = -1 if wanted.metric in lower else 1
    return sorted(found, key=lambda one: _place(one.scores.get(str(wanted.metric)), sign))


def _is_failing(result: CaseResult, higher: set[str], metrics: Sequence[str]) -> bool:
    if result.status == "failed":
        return True
    scores = {name: result.scores[name] for name in metrics if name in result.scores}
    return any(one.value is None or (name in higher and one.value < _PASSING) for name, one in scores.items())


def _place(score: Score | None, sign: int) -> tuple[int, float]:
    """Sort key: failed scores first, then from worst to best, then runs without a score."""
    if score is None:
        return 2, 0.0
    return (0, 0.0) if score.value is None else (1, score.value * sign)


def _columns(metrics: Sequence[str]) -> list[Column]:
    return [
        Column("trace"),
        Column("case", longest=24, narrow=16),
        Column("variant", longest=24, narrow=12),
        Column("repeat", right=True, drop=1),
        *(Column(one_line(metric), right=True, named=True) for metric in metrics),
        Column("what", own_line=True, rest=True, narrowest=12),
    ]


def _row(result: CaseResult, metrics: Sequence[str], *, in_pipe: bool) -> list[Text]:
    trace_id = result.trace_id or EMPTY
    return [
        cell(trace_id if in_pipe else short_id(trace_id), ACCENT),
        cell(result.case_id),
        cell(result.variant),
        cell(result.repeat if result.repeat or in_pipe else ""),
        *(_score(result.scores.get(metric)) for metric in metrics),
        cell(_what(result, metrics) or EMPTY, BAD if result.status == "failed" else ""),
    ]


def _score(score: Score | None) -> Text:
    if score is None:
        return cell(EMPTY)
    return cell("failed", BAD) if score.value is None else cell(score_text(score.value))


def _what(result: CaseResult, metrics: Sequence[str]) -> str:
    if result.error is not None:
        return result.error
    scores = [(name, result.scores[name]) for name in metrics if name in result.scores]
    notes = [(name, one.error or one.comment or one.label) for name, one in scores]
    said = "; ".join(f"{name}: {note}" for name, note in notes if note)
    return said or ("" if result.output is None else str(result.output))
