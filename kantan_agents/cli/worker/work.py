"""``kantan-agents worker``: makes durable runs until a signal ends it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any, Final

import typer

from kantan_agents.agent import Agent
from kantan_agents.cli.terminal.durable_database import database_url
from kantan_agents.cli.terminal.failures import describe
from kantan_agents.cli.terminal.load_object import load_object
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.durable import DurableRuns, Limits
from kantan_agents.errors import InvalidOptionError
from kantan_agents.support.arguments import checked_number
from kantan_agents.traces.recorder import record_traces

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_OPTION = "MODULE:NAME"


def work(
    names: Sequence[str],
    database: str,
    *,
    queues: Mapping[str, Limits],
    grace: float,
    keep_events: bool,
    traces: str | None,
    application: str,
    engine: str,
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
    agents = _read_agents(names)
    _log_to_stderr()
    if traces is not None:
        record_traces(traces)
    runs = DurableRuns(
        url, agents, queues=queues, application=application, keep_events=keep_events, engine=engine
    )
    asyncio.run(_work(runs, [agent.name for agent in agents], list(queues), grace))


async def _work(runs: DurableRuns, agents: Sequence[str], queues: Sequence[str], grace: float) -> None:
    ending = _EndingSignal()
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


class _EndingSignal:
    """Waits for the signal that ends a worker. Create it on the event loop, in the main thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._received = asyncio.Event()
        self.name = ""
        self._before = {number: signal.signal(number, self._note) for number in _SIGNALS}

    def _note(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.name = signal.Signals(number).name
        for one in _SIGNALS:
            signal.signal(one, signal.SIG_DFL)
        self._loop.call_soon_threadsafe(self._received.set)

    def restore(self) -> None:
        """Set the handlers again that were set before, unless a signal has come."""
        if not self.name:
            for number, handler in self._before.items():
                signal.signal(number, handler)

    async def wait(self) -> None:
        """Wait for the first signal."""
        await self._received.wait()


def _read_agents(names: Sequence[str]) -> list[Agent[Any]]:
    """Return the agents, each once.

    Args:
        names: ``MODULE:NAME`` of an agent, of a list or tuple of agents, or of a function without parameters
            that returns one of these.

    Raises:
        InvalidOptionError: E75, there is no such object, importing it fails, or it is something else.
    """
    agents: list[Agent[Any]] = []
    for name in names:
        for agent in _agents_of(name):
            if all(agent is not known for known in agents):
                agents.append(agent)
    return agents


def _agents_of(name: str) -> Sequence[Agent[Any]]:
    found = load_object(name, _OPTION, "app.agents:support")
    if callable(found) and not isinstance(found, Agent):
        try:
            found = found()
        except Exception as error:
            raise InvalidOptionError(option=_OPTION, reason=f"{name}: {describe(error)}") from error
    listed = found if isinstance(found, (list, tuple)) else [found]
    for agent in listed:
        if not isinstance(agent, Agent):
            reason = f"{name}: it must be an Agent or a list of agents, not {type(agent).__name__}"
            raise InvalidOptionError(option=_OPTION, reason=reason)
    if not listed:
        raise InvalidOptionError(option=_OPTION, reason=f"{name}: it is an empty list")
    return listed
