"""``worker``: executes durable runs."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Coroutine, Mapping, Sequence
from types import FrameType
from typing import Any, Final, NoReturn

import typer

from kantan_agents.agent import Agent
from kantan_agents.cli.terminal.durable_database import database_url
from kantan_agents.cli.terminal.failures import describe
from kantan_agents.cli.terminal.load_object import load_object
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.durable import DurableRuns, Limits
from kantan_agents.durable.started_runs import Started
from kantan_agents.errors import InvalidOptionError
from kantan_agents.support.arguments import checked_number
from kantan_agents.traces.recorder import record_traces

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_OPTION = "MODULE:NAME"
_THREAD_SECONDS: Final = 0.5


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
    """Execute durable runs until a signal."""
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
    others = {*threading.enumerate()}
    asyncio.run(_work(runs, [agent.name for agent in agents], list(queues), grace))
    left = [one for one in threading.enumerate() if not (one.daemon or one in others)]
    end = time.monotonic() + _THREAD_SECONDS
    for one in left:
        one.join(max(0.0, end - time.monotonic()))
    if any(one.is_alive() for one in left):
        _end_now()


async def _work(runs: DurableRuns, agents: Sequence[str], queues: Sequence[str], grace: float) -> None:
    ending = _EndingSignal()
    try:
        if not await ending.lets_end(runs.start()):
            return
        of = f"agents: {', '.join(agents)}; queues: {', '.join(queues) or 'none'}"
        _say(f"worker {os.getpid()} is ready; {of}; database: {runs.database}")
        await ending.wait()
        _say(f"worker {os.getpid()} ends after {ending.name}; a second signal ends it at once")
    finally:
        await runs.stop(grace)
        if Started.closing is not None:  # before the loop waits for its threads
            _end_now()
        ending.restore()


def _end_now() -> NoReturn:
    """Exit although functions block threads."""
    _say(f"worker {os.getpid()} ends with threads still at work; another worker goes on with the runs")
    atexit._run_exitfuncs()  # such as the exit function of the trace recorder
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _say(line: str) -> None:
    typer.echo(one_line(line), err=True)


def _let_modules_log() -> None:
    # A handler of this program would disable `logging.basicConfig()` in the agents' module.
    root = logging.getLogger()
    for handler in [one for one in root.handlers if type(one) is logging.NullHandler]:
        root.removeHandler(handler)


def _log_to_stderr() -> None:
    """Log the library's messages, unless the agents' module does."""
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
        """Restore the handlers, unless a signal has come."""
        if not self.name:
            for number, handler in self._before.items():
                signal.signal(number, handler)

    async def wait(self) -> None:
        """Wait for the first signal."""
        await self._received.wait()

    async def lets_end(self, beginning: Coroutine[Any, Any, None]) -> bool:
        """Await something and return True; on a signal, cancel it and return False."""
        task, waiting = asyncio.create_task(beginning), asyncio.create_task(self.wait())
        await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            task.cancel()
        waiting.cancel()
        await asyncio.wait((task,))
        if task.cancelled():
            return False
        task.result()
        return True


def _read_agents(names: Sequence[str]) -> list[Agent[Any]]:
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
