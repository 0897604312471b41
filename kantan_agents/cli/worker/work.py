"""``kantan-agents worker``: makes durable runs until a signal ends it."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping, Sequence

import typer

from kantan_agents.cli.terminal.durable_database import database_url
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.cli.worker.read_agents import read_agents
from kantan_agents.cli.worker.signals import EndingSignal
from kantan_agents.durable import DurableRuns, Limits
from kantan_agents.support.arguments import checked_number
from kantan_agents.traces.recorder import record_traces


def work(
    names: Sequence[str],
    database: str,
    *,
    queues: Mapping[str, Limits],
    grace: float,
    keep_events: bool,
    traces: str | None,
    application: str,
) -> None:
    """Make durable runs until a signal.

    Raises:
        InvalidOptionError: E75, an argument is invalid, or the agents cannot be imported.
        TraceDatabaseError: E60, the trace database cannot be used.
        DurableDatabaseError: E156, the database cannot be used.
    """
    checked_number("--grace", grace)
    url = database_url(database)
    _let_modules_log()
    agents = read_agents(names)
    _log_to_stderr()
    if traces is not None:
        record_traces(traces)
    runs = DurableRuns(url, agents, queues=queues, application=application, keep_events=keep_events)
    asyncio.run(_work(runs, [agent.name for agent in agents], list(queues), grace))


async def _work(runs: DurableRuns, agents: Sequence[str], queues: Sequence[str], grace: float) -> None:
    ending = EndingSignal()
    try:
        await runs.start()
        of = f"agents: {', '.join(agents)}; queues: {', '.join(queues) or 'none'}"
        _say(f"worker {os.getpid()} is ready; {of}; database: {runs.database}")
        await ending.wait()
        _say(f"worker {os.getpid()} ends after {ending.name}; a second signal ends it at once")
    finally:
        await runs.stop(grace)
        ending.restore()


def _say(line: str) -> None:
    typer.echo(one_line(line), err=True)


def _let_modules_log() -> None:
    # The program's own handler would make `logging.basicConfig()` in the module of the agents do nothing.
    root = logging.getLogger()
    for handler in [one for one in root.handlers if type(one) is logging.NullHandler]:
        root.removeHandler(handler)


def _log_to_stderr() -> None:
    """Log what the library has to say about the runs, unless the module of the agents logs already."""
    if logging.getLogger().handlers:
        return
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("kantan_agents.durable").setLevel(logging.INFO)
