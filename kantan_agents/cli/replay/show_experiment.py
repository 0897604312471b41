"""Prints an experiment: its figures before and after, what has changed, and each run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from kantan_agents.cli.terminal.console import (
    ACCENT,
    BAD,
    GOOD,
    NOTICE,
    STRONG,
    pairs,
    plain,
    wide_terminal,
)
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.cli.terminal.rows import Column, cell, line_width, print_lines, row_lines
from kantan_agents.cli.terminal.show_quantities import count_text, counted, duration_text, rate_text
from kantan_agents.cli.traces.records import EMPTY, short_id

if TYPE_CHECKING:
    from kantan_agents.lab.replay import Experiment, Figures, RunOutcome

_STYLES: Final = {"same": GOOD, "wording": GOOD, "changed": NOTICE, "diverged": NOTICE, "failed": BAD}
_FIGURES: Final = (Column(""), Column("before", right=True), Column("after", right=True))
_RUNS: Final = (
    Column("trace"),
    Column("repeat", right=True, drop=1),
    Column("result"),
    Column("tokens", right=True, named=True, drop=2),
    Column("what", own_line=True, rest=True, narrowest=12),
)
_MOST: Final = 10


def show_experiment(experiment: Experiment) -> None:
    """Print an experiment."""
    console = wide_terminal()
    width = line_width(console)
    found = [f"{count} {status}" for status, count in experiment.counts.items() if count]
    coverage = rate_text(len(experiment.covered), len(experiment.runs))
    console.print(
        pairs(
            [
                ("experiment", experiment.name),
                ("agent", experiment.agent),
                ("changed", "; ".join(experiment.changes)),
                ("runs", f"{len(experiment.runs)} of {experiment.planned}: {', '.join(found) or 'none'}"),
                ("coverage", f"{coverage or EMPTY} without divergence"),
            ]
        )
    )
    if experiment.covered:
        console.print()
        print_lines(console, row_lines(_FIGURES, _figure_rows(experiment), width))
    _print_list("Changed decisions", _decisions(experiment))
    _print_list("New calls", _new_calls(experiment))
    _print_list("Left out", [f"{short_id(one.trace_id)}: {one.reason}" for one in experiment.skipped])
    if experiment.runs:
        console.print()
        print_lines(console, row_lines(_RUNS, [_run_row(run) for run in experiment.runs], width))


def _figure_rows(experiment: Experiment) -> list[list[Text]]:
    before, after = experiment.before, experiment.after
    rows: list[tuple[str, Any]] = [
        ("model calls", lambda one: count_text(one.model_calls)),
        ("input tokens", lambda one: count_text(one.input_tokens)),
        ("output tokens", lambda one: count_text(one.output_tokens)),
        ("time in models", lambda one: duration_text(one.seconds)),
        ("cost", _cost_text),
    ]
    return [
        [cell(label), cell(shown(before)), cell(shown(after))]
        for label, shown in rows
        if shown(before) or shown(after)
    ]


def _cost_text(figures: Figures) -> str:
    return "" if figures.cost is None else f"{figures.cost:.6g}"


def _decisions(experiment: Experiment) -> list[str]:
    return [
        f"{kind} {name} of {agent}: {counted(count, 'run')}"
        for (kind, agent, name), count in experiment.changed_decisions.items()
    ]


def _new_calls(experiment: Experiment) -> list[str]:
    return [
        f"{tool} of {agent}: {counted(count, 'run')}" for (agent, tool), count in experiment.new_calls.items()
    ]


def _print_list(title: str, lines: list[str]) -> None:
    if not lines:
        return
    console = wide_terminal()
    console.print()
    console.print(plain(title, STRONG))
    more = [f"and {len(lines) - _MOST} more"] if len(lines) > _MOST else []
    for line in (*lines[:_MOST], *more):
        console.print(plain(f"  {one_line(line)}"), soft_wrap=True)


def _run_row(run: RunOutcome) -> list[Text]:
    return [
        cell(short_id(run.trace_id), ACCENT),
        cell(run.repeat),
        cell(run.status, _STYLES[run.status]),
        cell(count_text(run.after.tokens)),
        cell(_what(run) or EMPTY),
    ]


def _what(run: RunOutcome) -> str:
    if run.new_call is not None:
        call = run.new_call
        return f"step {call.step}: {call.tool}({call.arguments}): {call.reason}"
    if run.decisions:
        return "; ".join(
            f"{one.kind} {one.name}: {_side(one.before)} -> {_side(one.after)}" for one in run.decisions
        )
    return run.error or str(run.output_after or "")


def _side(value: Any) -> str:
    return EMPTY if value is None else str(value)
