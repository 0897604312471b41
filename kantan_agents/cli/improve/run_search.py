"""``kantan-agents improve``: searches, and prints what was found."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import typer

from kantan_agents.agent import Agent
from kantan_agents.cli.eval.read_evaluators import read_evaluators
from kantan_agents.cli.improve.show_improvement import progress_text, show_improvement
from kantan_agents.cli.replay.load_agent import load_agent
from kantan_agents.cli.run.recording import recording
from kantan_agents.cli.terminal.failures import EXIT_FAILED
from kantan_agents.cli.terminal.load_object import load_object
from kantan_agents.cli.terminal.plain import json_text, one_line
from kantan_agents.cli.traces.open_store import open_store
from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.improve import ImproveProgress, improve
from kantan_agents.lab.replay import Cohort

_OPTION = "--judge"


@attrs.frozen
class ImproveArguments:
    """What the command line asks for.

    Attributes:
        path: The database.
        agent: Where the agent is, ``MODULE:NAME``.
        judge: What gives the scores.
        judge_model: The model of the judge ``judged``; None for that of the agent.
        trace_ids: Ids of traces; empty to select them.
        options: Arguments of ``improve``.
    """

    path: Path
    agent: str
    judge: str
    judge_model: str | None
    trace_ids: Sequence[str]
    options: Mapping[str, Any]


def run_search(asked: ImproveArguments, *, quiet: bool, as_json: bool) -> None:
    """Search, and print what was found.

    Raises:
        KantanAgentsError: Any error of ``improve``.
        typer.Exit: Nothing is shown to be better.
    """
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
        show_improvement(found)
    if found.new is None:
        typer.echo(one_line(found.text), err=True)
        raise typer.Exit(EXIT_FAILED)


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[ImproveProgress], None] | None]:
    """Show how far the search is on standard error, if that is a terminal."""
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
    """Return what ``improve`` takes as a judge.

    Args:
        what: An evaluator as for ``eval run``, or ``MODULE:NAME``, which may be an agent as well.
        agent: The agent whose prompt ``judged`` judges by.
        model: The model of ``judged``; None for that of the agent.

    Raises:
        InvalidOptionError: E75, there is no such judge.
    """
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
