"""``DurableRuns``, which executes its agents' runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from threading import Thread
from types import TracebackType
from typing import Any, Final

import anyio
import anyio.to_thread
from typing_extensions import Self

from kantan_agents.durable.engines.chosen import checked_engine, engine_of
from kantan_agents.durable.engines.engine import Limits, resumed_queue
from kantan_agents.durable.event_keeper import EventKeeper
from kantan_agents.durable.making import Making
from kantan_agents.durable.middleware import durable_of
from kantan_agents.durable.overseer import Overseer
from kantan_agents.durable.restart import Restart
from kantan_agents.durable.started_runs import Started
from kantan_agents.durable.storage.alive import alive_in
from kantan_agents.durable.storage.approvals import ApprovalStore
from kantan_agents.durable.storage.database import RunDatabase
from kantan_agents.durable.storage.steps import StepStore
from kantan_agents.errors import (
    DurableNotStartedError,
    InvalidOptionError,
)
from kantan_agents.support.arguments import checked_bool, checked_int, checked_number
from kantan_agents.support.log import get_logger
from kantan_agents.support.waiting import wait_for_end
from kantan_agents.traces.postgres.patient_connection import HURRIED_SECONDS
from kantan_agents.traces.recorder import sigterm

_log = get_logger("kantan_agents.durable")

_LEAST_SECONDS: Final = 1.0
_CLOSING_SECONDS: Final = 30.0


class DurableRuns(Making):
    """Runs, stores and resumes durable runs in a database.

        async with DurableRuns("sqlite:///runs.sqlite3", agents=[support]) as runs:
            context = await support.run_async("Hello")

    Inside the block, this process executes durable runs: its own, the runs of its ``queues``, and runs that
    ended processes have left. Only one can be started in a process.

    The methods that list, answer, cancel and resume also work without the block.

    Args:
        database: ``sqlite:///PATH`` for the processes of one machine, ``postgresql://...`` for several. The
            URL may set limits of connections, such as ``connect_timeout``. A process opens at most 36.
        agents: The agents whose runs this process executes. Each has a ``Durable`` among its middleware and a
            unique name.
        queues: The queues whose runs this process executes, with their ``Limits``.
        application: Processes with the same name execute each other's runs, and so need the same agents.
        max_recoveries: How often a run is taken over from an ended process before it is parked.
        keep_events: Whether the events of the runs are stored, so that ``events`` can read them in any
            process.
        look_interval: Seconds between two looks for runs that ended processes have left.
        engine: Distributes the runs to the processes: ``"dbos"``, which needs only the database, or
            ``"temporal://HOST:PORT/NAMESPACE"``, a server. A database belongs to one kind of engine.

    Raises:
        DurableDatabaseError: E156, the database is of another kind.
        ExtraMissingError: E198, the extra ``dbos``, or ``temporal``, is not installed.
        InvalidOptionError: E75, another option has an invalid value, or Temporal has no such limit.
    """

    def __init__(
        self,
        database: str,
        agents: Iterable[Any] = (),
        *,
        queues: Mapping[str, Limits] | Iterable[str] = (),
        application: str = "kantan-agents",
        max_recoveries: int = 10,
        keep_events: bool = False,
        look_interval: float = 1.0,
        engine: str = "dbos",
    ) -> None:
        self._database = RunDatabase(database, checked_engine(engine))
        self._agents = _checked_agents(agents)
        self._queues = _checked_queues(queues)
        if not isinstance(application, str) or not application.isprintable() or not application.strip():
            raise InvalidOptionError(option="application", reason=f"must be a name, not {application!r}")
        attempts = checked_int("max_recoveries", max_recoveries, 0)
        interval = checked_number("look_interval", look_interval, above_zero=True)
        made = engine_of(engine, self._database, application, attempts, interval, self._queues)
        self._steps = StepStore(self._database)
        super().__init__(self._database, made, ApprovalStore(self._database), self._steps)
        self._overseer = Overseer(
            made,
            alive_in(self._database, interval),
            self._steps,
            self.go_on_answered,
            self._agents,
            interval,
        )
        self._restart = Restart(self._agents, self._approvals)
        self._live: dict[str, Any] = {}
        self._keeper = EventKeeper(self._events) if checked_bool("keep_events", keep_events) else None
        self._subscriptions: list[Any] = []
        Started.made.add(self)

    async def start(self) -> None:
        """Start executing runs. ``async with`` does the same.

        Raises:
            DurableNotStartedError: E150, another one is started in this process.
            DurableDatabaseError: E156, the database cannot be used, or does not answer within 30 seconds (ten
                minutes while it changes the tables of an older version).
        """
        if Started.closing is not None:  # work left at the timeout of a `stop`
            await _in_thread(partial(Started.closing.join, _CLOSING_SECONDS))
        if Started.runs is not None:
            reason = "a process can have one DurableRuns started, and another one is"
            raise DurableNotStartedError(agent=", ".join(self._agents), reason=reason)
        Started.runs = self
        # A server that must end cancels its requests first. Their runs must resume elsewhere.
        sigterm.flush_on_sigterm()
        task = asyncio.create_task(_in_thread(self._start))
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            self._database.hurry()
            with suppress(asyncio.CancelledError):
                await wait_for_end(task)
            if task.exception() is None:
                await _in_thread(self._stop)
            Started.runs = None
            raise
        except BaseException:
            Started.runs = None
            raise

    def _start(self) -> None:
        try:
            self._database.open()
            self._overseer.hold(self._engine.executor)
            if self._keeper is not None:
                self._keeper.start()
                self._subscriptions = [agent.subscribe(self._keeper) for agent in self._agents.values()]
            resumed = {resumed_queue(name): Limits() for name in self._agents}
            self._engine.start(self._make, {**self._queues, **resumed})
        except BaseException:
            self._end()
            raise
        self._overseer.look()
        self._overseer.start()

    async def stop(self, timeout: float = 10.0) -> None:  # noqa: ASYNC109 - it ends the runs
        """Stop executing runs, and close all connections.

        Runs that have not ended are left to other processes, or to the next start. If it was not started,
        this only closes the connections.

        Args:
            timeout: Seconds for all of this at most. A tenth of them, at most one second, is for closing the
                connections, and the rest for the active runs. Work that has not ended then, such as a
                function that holds its thread, is left to the end of the process.
        """
        if Started.runs is not self:
            self._database.hurry()
            await _in_thread(self._close)
            return
        task = asyncio.create_task(self._wait_and_stop(timeout))
        try:
            await asyncio.shield(task)
        finally:
            await wait_for_end(task)

    async def _wait_and_stop(self, timeout: float) -> None:  # noqa: ASYNC109 - as above
        end = time.monotonic() + timeout
        last = end - min(timeout / 10, 1.0)
        # So that an unresponsive server counts as away before the timeout.
        hurry = asyncio.get_running_loop().call_later(
            max(timeout - HURRIED_SECONDS - 1.0, 0.0), self._database.hurry
        )
        try:
            # Otherwise a full queue would keep it busy until the timeout.
            await _until(last, self._engine.take_no_more)
            await self._overseer.wait_for_end(last - time.monotonic())
        finally:
            hurry.cancel()
            self._overseer.is_stopping = True
            self._database.hurry()
            Started.closing = await _until(max(end, time.monotonic() + _LEAST_SECONDS), self._stop)
            if Started.closing is not None:
                _log.warning("durable runs not stopped in time: what is left ends with the process")

    def forget(self) -> None:
        """In a forked child: leave everything to the parent."""
        for subscription in self._subscriptions:
            subscription.cancel()
        self._subscriptions = []
        self._keeper = None if self._keeper is None else EventKeeper(self._events)
        self._overseer.forget()
        self._engine.after_fork()
        self._database.forget()

    def _stop(self) -> None:
        try:
            self._overseer.end_all()
            self._overseer.look_no_more()
            self._engine.stop()
        finally:
            self._end()
            Started.runs = None

    def _end(self) -> None:
        for subscription in self._subscriptions:
            subscription.cancel()
        if self._keeper is not None:
            self._keeper.stop()
        self._overseer.stop()
        self._close()

    def _close(self) -> None:
        with self._poller.between_looks():
            self._engine.stop()
            self._database.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    def __repr__(self) -> str:
        state = "started" if Started.runs is self else "not started"
        return f"DurableRuns({self._database.shown!r}, agents={list(self._agents)}, {state})"


async def _until(end: float, function: Callable[[], None]) -> Thread | None:
    """Call a function in a thread; return the thread if it outlasts the timeout."""
    loop, ended, failures = asyncio.get_running_loop(), asyncio.Event(), list[BaseException]()

    def call() -> None:
        try:
            function()
        except BaseException as error:  # noqa: BLE001 - raised below
            failures.append(error)
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(ended.set)

    # A daemon: the end of the process does not wait for it.
    thread = Thread(target=call, name="kantan-agents-stop", daemon=True)
    thread.start()
    with anyio.move_on_after(max(end - time.monotonic(), 0.0)):
        await ended.wait()
    if not ended.is_set():
        return thread
    if failures:
        raise failures[0]
    return None


async def _in_thread(function: Callable[[], None]) -> None:
    # Not one of the usual threads: all of these may wait for the database.
    await anyio.to_thread.run_sync(function, limiter=anyio.CapacityLimiter(1))


def _checked_agents(agents: Iterable[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for agent in agents:
        if not hasattr(agent, "layers") or durable_of(agent) is None:
            name = getattr(agent, "name", agent)
            reason = f"must be agents with Durable() among their middleware; {name!r} has none"
            raise InvalidOptionError(option="agents", reason=reason)
        if agent.name in found:
            raise InvalidOptionError(option="agents", reason=f"has two agents of the name {agent.name!r}")
        found[agent.name] = agent
    return found


def _checked_queues(queues: Mapping[str, Limits] | Iterable[str]) -> dict[str, Limits]:
    if isinstance(queues, str):
        queues = (queues,)
    given = dict(queues) if isinstance(queues, Mapping) else {name: Limits() for name in queues}
    for name, limits in given.items():
        if not isinstance(name, str) or not name or name.startswith(("_dbos_", "kantan_agents_")):
            raise InvalidOptionError(option="queues", reason=f"{name!r} is not a name for a queue")
        if not isinstance(limits, Limits):
            raise InvalidOptionError(option="queues", reason=f"must map {name!r} to Limits, not {limits!r}")
    return given
