"""``improve``: searches, and prints the result."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import typer
from rich.text import Text

from kantan_agents.agent import Agent
from kantan_agents.cli.eval.read_evaluators import read_evaluators
from kantan_agents.cli.eval.show_evaluation import print_section
from kantan_agents.cli.replay.load_agent import load_agent
from kantan_agents.cli.run.recording import recording
from kantan_agents.cli.terminal.console import ACCENT, BAD, GOOD, LABEL, pairs, wide_terminal
from kantan_agents.cli.terminal.failures import EXIT_FAILED
from kantan_agents.cli.terminal.load_object import load_object
from kantan_agents.cli.terminal.plain import json_text, one_line, printable, whole
from kantan_agents.cli.terminal.rows import Column, cell, line_width, print_lines, row_lines
from kantan_agents.cli.terminal.show_quantities import count_text, counted
from kantan_agents.cli.traces.diff_lines import diff_lines
from kantan_agents.cli.traces.open_store import open_store
from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.improve import Candidate, Improvement, ImproveProgress, improve
from kantan_agents.lab.replay import Cohort

_OPTION = "--judge"
_STYLES = {"winner": GOOD, "refused": BAD, "not eligible": BAD}
_COLUMNS = [
    Column("version"),
    Column("from", named=True),
    Column("sample", right=True, named=True),
    Column("validation", right=True, named=True),
    Column("tokens", right=True, named=True, drop=1),
    Column("result"),
    Column("why", own_line=True, rest=True),
]


@attrs.frozen
class ImproveArguments:
    """The command-line arguments."""

    path: Path
    agent: str
    judge: str
    judge_model: str | None
    trace_ids: Sequence[str]
    options: Mapping[str, Any]


def run_search(asked: ImproveArguments, *, quiet: bool, as_json: bool) -> None:
    """Search; exit with 1 without an improvement."""
    store = open_store(asked.path)
    agent = load_agent(asked.agent)
    judge = _read_judge(asked.judge, agent, asked.judge_model)
    cohort = Cohort.of(store, asked.trace_ids) if asked.trace_ids else None
    try:
        with recording(asked.path), _progress(quiet=quiet) as progress:
            found = improve(agent, store, judge=judge, cohort=cohort, progress=progress, **asked.options)
    except KeyboardInterrupt:
        typer.echo("interrupted: what is finished is kept; the same command goes on with the rest", err=True)
        raise
    if as_json:
        typer.echo(json_text(found.to_dict(), default=str))
    elif not quiet:
        _show_improvement(found)
    if found.new is None:
        typer.echo(one_line(found.text), err=True)
        raise typer.Exit(EXIT_FAILED)


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[ImproveProgress], None] | None]:
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (BarColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=Console(stderr=True, markup=False), transient=True) as bar:
        task = bar.add_task("", total=None)

        def show(now: ImproveProgress) -> None:
            bar.update(task, completed=now.round, total=now.rounds, description=progress_text(now))

        yield show


def _read_judge(what: str, agent: Agent[Any], model: str | None) -> Any:
    """Return an evaluator as for ``eval run``, or the object ``MODULE:NAME``, which may be an agent."""
    if model is not None and what.rpartition("=")[2] != "judged":
        raise InvalidOptionError(option="--judge-model", reason=f"is for {_OPTION} judged, not for {what!r}")
    try:
        evaluators = read_evaluators([what], agent, model)
    except InvalidOptionError as error:
        found = _agent(what)
        if found is not None:
            return found
        option = _OPTION if error.option == "--evaluator" else error.option
        reason = error.reason.replace("--evaluator", _OPTION)
        raise InvalidOptionError(option=option, reason=reason) from error
    return evaluators[0]


def _agent(what: str) -> Agent[Any] | None:
    module, mark, _ = what.partition(":")
    if not mark or not module.replace(".", "").isidentifier():
        return None
    try:
        found = load_object(what, _OPTION, "app.agents:critic")
    except InvalidOptionError:
        return None
    return found if isinstance(found, Agent) else None


def _show_improvement(found: Improvement) -> None:
    console = wide_terminal()
    new = "none" if found.new is None else found.new.version
    cases = ", ".join(f"{count_text(count)} {part}" for part, count in found.cases.items())
    facts: list[tuple[str, object]] = [
        ("prompt", f"{found.old.name} {found.old.version}"),
        ("new version", new),
        ("cases", cases + (f"; {counted(len(found.skipped), 'trace')} left out" if found.skipped else "")),
        ("rounds", f"{found.rounds}{', then the budget was used up' if found.is_out_of_budget else ''}"),
        ("used", _used(found)),
    ]
    if found.opening is not None:
        one = found.opening
        facts.append(
            (
                "held-out test",
                f"opened {counted(one.number, 'time')}, now at alpha {one.alpha:g}; {one.left:g} is left",
            )
        )
    console.print(pairs(facts))
    if found.comparison is not None:
        print_section("Verdict on the held-out cases", found.comparison.lines)
    if found.skipped:
        reasons = [f"{one.trace_id}: {one.reason}" for one in found.skipped[:3]]
        print_section("Left out", reasons)
    console.print()
    rows = [_row(one) for one in found.candidates]
    print_lines(console, row_lines(_COLUMNS, rows, line_width(console)))
    if found.diff:
        console.print()
        print_lines(console, diff_lines(console, found.diff, "", line_width(console)))
    print_section("Files", [str(path) for path in found.files.values()])
    if found.new is not None:
        console.print()
        for line in (*found.rollout_code, found.rollout_command):
            # Not wrapped or cut, because users paste it.
            typer.echo(whole(printable(line)))


def progress_text(now: ImproveProgress) -> str:
    """Return the search's progress on one line."""
    parts = {"baseline": "the old version runs", "test": "held-out test"}
    text = parts.get(now.step, f"round {now.round} of {now.rounds}")
    if now.old_score is not None:
        best = now.old_score if now.best_score is None else now.best_score
        text += f", validation {now.old_score:.3g} -> {best:.3g}"
    text += f", {count_text(now.tokens)} tokens"
    return text if not now.cost else f"{text}, cost {now.cost:.4g}"


def _row(one: Candidate) -> list[Text]:
    sample = "" if one.sample is None else f"{one.sample:.3g}"
    if one.parent_sample is not None and sample:
        sample = f"{one.parent_sample:.3g} -> {sample}"
    return [
        cell(one.number, ACCENT),
        cell("" if one.parent is None else one.parent),
        cell(sample),
        cell("" if one.score is None else f"{one.score:.3g}"),
        cell("" if one.tokens is None else count_text(one.tokens)),
        cell(one.status, _STYLES.get(one.status, LABEL)),
        cell(one.remark),
    ]


def _used(found: Improvement) -> str:
    text = f"{count_text(found.tokens)} tokens"
    return text if found.cost is None else f"{text}, cost {found.cost:.4g}"
