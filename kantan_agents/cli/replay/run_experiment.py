"""``replay cohort``: runs an experiment."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs
import typer
from rich.text import Text

from kantan_agents.agent import Agent
from kantan_agents.agent.running.portal import background_loop
from kantan_agents.cli.replay.load_agent import load_agent
from kantan_agents.cli.run.recording import recording
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
from kantan_agents.cli.terminal.failures import EXIT_FAILED, EXIT_USAGE, describe
from kantan_agents.cli.terminal.max_failed import MaxFailed
from kantan_agents.cli.terminal.plain import json_text, one_line
from kantan_agents.cli.terminal.rows import Column, cell, line_width, print_lines, row_lines
from kantan_agents.cli.terminal.show_quantities import count_text, counted, duration_text, rate_text
from kantan_agents.cli.traces.open_store import open_store
from kantan_agents.cli.traces.records import EMPTY, short_id
from kantan_agents.errors import InvalidOptionError, ReplayBudgetError

if TYPE_CHECKING:
    from kantan_agents.lab.replay import Change, Experiment, RunOutcome, UsageMetrics
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


@attrs.frozen
class CohortArguments:
    """The arguments; ``of`` names the changed agent."""

    path: Path
    agent: str
    changes: Sequence[Change]
    of: str | None
    trace_ids: Sequence[str]
    selection: Mapping[str, Any]
    options: Mapping[str, Any]
    max_failed: MaxFailed


def run_experiment(asked: CohortArguments, *, records: bool, as_json: bool) -> None:
    """Run the experiment; exit with 1 if it stopped early or too many runs failed."""
    from kantan_agents.lab.replay import Cohort, replay_cohort

    store = open_store(asked.path)
    agent = load_agent(asked.agent)
    prompt = asked.selection.get("prompt")
    if asked.trace_ids:
        cohort = Cohort.of(store, asked.trace_ids)
    else:
        # A filter for the agent and its prompt finds one agent with both; another agent's prompt is not its
        # own.
        is_own = prompt in (None, agent.standard_metadata.get("prompt_name"))
        cohort = Cohort.select(store, agent=agent.name if is_own else None, **asked.selection)
    changes = _aim_changes(asked.changes, agent, of=asked.of, prompt=prompt)
    finished = [0, 0]
    try:
        with recording(asked.path if records else None), _progress(finished) as progress:
            experiment = replay_cohort(cohort, agent, changes, progress=progress, **asked.options)
    except KeyboardInterrupt:
        done, planned = finished
        text = f"interrupted: {done} of {planned} runs are kept; the same command goes on with the others"
        typer.echo(text, err=True)
        raise
    if as_json:
        typer.echo(json_text(experiment.to_dict(), default=str))
    else:
        _show_experiment(experiment)
    if experiment.stopped is not None:
        kept = f"{len(experiment.runs)} of {experiment.planned} runs are kept"
        typer.echo(f"error: {describe(experiment.stopped)} ({kept})", err=True)
        is_budget = isinstance(experiment.stopped, ReplayBudgetError)
        raise typer.Exit(EXIT_FAILED if is_budget else EXIT_USAGE)
    failed = [one for one in experiment.runs if one.status == "failed"]
    first = f"{short_id(failed[0].trace_id)}: {failed[0].error}" if failed else ""
    asked.max_failed.check(len(failed), len(experiment.runs), first)


@contextmanager
def _progress(finished: list[int]) -> Iterator[Callable[[int, int], None]]:
    def count(done: int, total: int) -> None:
        finished[:] = done, total

    if not sys.stderr.isatty():
        yield count
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("running", total=None)

        def show(done: int, total: int) -> None:
            count(done, total)
            bar.update(task, completed=done, total=total)

        yield show


def _aim_changes(
    changes: Sequence[Change], agent: Agent[Any], *, of: str | None, prompt: str | None
) -> list[Change]:
    """Return the changes, each with the agents that it applies to: ``of``, or agents with ``prompt``.

    E75 if no agent that the run can reach has the prompt.
    """
    names = [of] if of is not None else [agent.name] if prompt is None else _with_prompt(agent, prompt)
    aimed: list[Change] = []
    for change in changes:
        if change.run_rules is not None:
            aimed.append(change)
        else:
            aimed += [change if name == agent.name else change.of(name) for name in names]
    return aimed


def _with_prompt(agent: Agent[Any], prompt: str) -> list[str]:
    from kantan_agents.lab.experiment.reached import Reached

    names = background_loop.run(lambda: Reached.from_agent(agent)).with_prompt(prompt)
    if not names:
        reason = (
            f"no agent that {agent.name!r} reaches has the prompt {prompt!r} now; name the agent with --of"
        )
        raise InvalidOptionError(option="--prompt", reason=reason)
    return sorted(names)


def _show_experiment(experiment: Experiment) -> None:
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


def _cost_text(figures: UsageMetrics) -> str:
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
