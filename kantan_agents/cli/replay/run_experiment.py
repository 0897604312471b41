"""``kantan-agents replay cohort``: makes the runs and prints what became of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import typer

from kantan_agents.agent import Agent
from kantan_agents.agent.running.portal import background_loop
from kantan_agents.cli.replay.load_agent import load_agent
from kantan_agents.cli.replay.show_experiment import show_experiment
from kantan_agents.cli.run.recording import recording
from kantan_agents.cli.terminal.failures import EXIT_FAILED, EXIT_USAGE, describe
from kantan_agents.cli.terminal.plain import json_text
from kantan_agents.cli.traces.open_store import open_store
from kantan_agents.errors import InvalidOptionError, ReplayBudgetError

if TYPE_CHECKING:
    from kantan_agents.lab.replay import Change


@attrs.frozen
class CohortArguments:
    """What the command line asks for.

    Attributes:
        path: The database.
        agent: Where the agent is, ``module:name``.
        changes: The changes.
        of: Name of the agent that they change; None for those with the selected prompt.
        trace_ids: Ids of traces; empty to select them.
        selection: Arguments of ``Cohort.select``.
        options: Arguments of ``replay_cohort``.
    """

    path: Path
    agent: str
    changes: Sequence[Change]
    of: str | None
    trace_ids: Sequence[str]
    selection: Mapping[str, Any]
    options: Mapping[str, Any]


def run_experiment(asked: CohortArguments, *, records: bool, as_json: bool) -> None:
    """Make the runs and print the experiment.

    Raises:
        KantanAgentsError: Any error of ``Cohort`` and ``replay_cohort``.
        typer.Exit: It was stopped before all runs were made.
    """
    from kantan_agents.lab.replay import Cohort, replay_cohort

    store = open_store(asked.path)
    agent = load_agent(asked.agent)
    prompt = asked.selection.get("prompt")
    if asked.trace_ids:
        cohort = Cohort.of(store, asked.trace_ids)
    else:
        # A filter for the agent and its prompt finds one agent with both; that of a reached agent is another.
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
        show_experiment(experiment)
    if experiment.stopped is not None:
        kept = f"{len(experiment.runs)} of {experiment.planned} runs are kept"
        typer.echo(f"error: {describe(experiment.stopped)} ({kept})", err=True)
        is_budget = isinstance(experiment.stopped, ReplayBudgetError)
        raise typer.Exit(EXIT_FAILED if is_budget else EXIT_USAGE)


@contextmanager
def _progress(finished: list[int]) -> Iterator[Callable[[int, int], None]]:
    """Count finished runs, and show a progress bar on standard error if that is a terminal."""

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
    """Return the changes, each for the agents that it is meant for.

    Args:
        changes: The changes.
        agent: The agent that is run.
        of: Name of the agent to change; None for those with the prompt.
        prompt: Name of the prompt by which the runs are selected; None to change the agent that is run.

    Raises:
        InvalidOptionError: E75, no agent that the run can reach has the prompt.
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
    from kantan_agents.lab.replay.reached import Reached

    names = background_loop.run(lambda: Reached.from_agent(agent)).with_prompt(prompt)
    if not names:
        reason = (
            f"no agent that {agent.name!r} reaches has the prompt {prompt!r} now; name the agent with --of"
        )
        raise InvalidOptionError(option="--prompt", reason=reason)
    return sorted(names)
