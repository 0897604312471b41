"""``DurableRuns``: the durable runs of a database; started, it makes those of its agents."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any

import anyio
import anyio.to_thread
from typing_extensions import Self

from kantan_agents.context import check_context
from kantan_agents.durable.again import Again
from kantan_agents.durable.checked import checked_agents, checked_queues
from kantan_agents.durable.engines.dbos_engine import RESUMED, DBOSEngine
from kantan_agents.durable.engines.engine import Engine, Limits
from kantan_agents.durable.engines.installed import check_installed
from kantan_agents.durable.execution import Execution, current_execution
from kantan_agents.durable.journal import Journal
from kantan_agents.durable.kept_events import EventKeeper
from kantan_agents.durable.management import Management
from kantan_agents.durable.middleware import Durable
from kantan_agents.durable.outcome import outcome_text
from kantan_agents.durable.overseer import Overseer
from kantan_agents.durable.session import DurableSession, check_session
from kantan_agents.durable.started import Started
from kantan_agents.durable.storage.alive import alive_in
from kantan_agents.durable.storage.approvals import Approvals
from kantan_agents.durable.storage.database import Database
from kantan_agents.durable.storage.steps import Steps
from kantan_agents.durable.stored_run import stored_run
from kantan_agents.durable.waiting import store_waiting
from kantan_agents.errors import (
    DurableNotStartedError,
    InvalidOptionError,
    NotStorableError,
    RunMovedError,
    StoredStepError,
    UnknownDurableAgentError,
)
from kantan_agents.interception import redacted_error
from kantan_agents.pipeline import Next, Run
from kantan_agents.support.arguments import checked_bool, checked_int, checked_number
from kantan_agents.support.log import get_logger
from kantan_agents.tracing.recorder import sigterm
from kantan_agents.tracing.spans import record_recovery

_log = get_logger("kantan_agents.durable")


class DurableRuns(Management):
    """The durable runs of a database.

        async with DurableRuns("sqlite:///runs.sqlite3", agents=[support]) as runs:
            context = await support.run_async("Hello")

    Inside the block, this process makes durable runs: those that it begins, those of its ``queues``, and
    those that ended processes have left. Only one can be started in a process.

    Without the block, the methods that list, answer, cancel and resume can be called too.

    Args:
        database: ``sqlite:///PATH`` for the processes of one machine, ``postgresql://...`` for several.
        agents: The agents whose runs this process makes. Each has a ``Durable`` among its middleware and a
            name of its own.
        queues: The queues whose runs this process makes, with their ``Limits``.
        application: Processes with the same name make each other's runs, and so need the same agents.
        max_recoveries: How often a run is taken over from an ended process before it is parked.
        keep_events: Whether the events of the runs are stored, so that ``events`` can read them in any
            process.
        look_interval: Seconds between two looks for runs that ended processes have left.

    Raises:
        DurableDatabaseError: E156, the database is of another kind, or a package is not installed.
        InvalidOptionError: E75, another option has an invalid value.
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
    ) -> None:
        check_installed()
        self._database = Database(database)
        self._agents = checked_agents(agents)
        self._queues = checked_queues(queues)
        if not isinstance(application, str) or not application.isprintable() or not application.strip():
            raise InvalidOptionError(option="application", reason=f"must be a name, not {application!r}")
        attempts = checked_int("max_recoveries", max_recoveries, 0)
        interval = checked_number("look_interval", look_interval, above_zero=True)
        engine: Engine = DBOSEngine(self._database, application, attempts, interval)
        self._steps = Steps(self._database)
        super().__init__(self._database, engine, Approvals(self._database), self._steps)
        self._overseer = Overseer(
            engine,
            alive_in(self._database),
            self._steps,
            self.go_on_answered,
            interval,
        )
        self._again = Again(self._agents, self._approvals)
        self._live: dict[str, Any] = {}
        self._keeper = EventKeeper(self._events) if checked_bool("keep_events", keep_events) else None
        self._subscriptions: list[Any] = []

    async def start(self) -> None:
        """Begin to make runs. ``async with`` does the same.

        Raises:
            DurableNotStartedError: E150, another one is started in this process.
            DurableDatabaseError: E156, the database cannot be used.
        """
        if Started.runs is not None:
            reason = "a process can have one DurableRuns started, and another one is"
            raise DurableNotStartedError(agent=", ".join(self._agents), reason=reason)
        Started.runs = self
        try:
            await anyio.to_thread.run_sync(self._start)
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
            self._engine.start(self._make, {**self._queues, RESUMED: Limits()})
        except BaseException:
            self._end()
            raise
        self._overseer.look()
        self._overseer.start()

    async def stop(self, timeout: float = 10.0) -> None:  # noqa: ASYNC109 - it ends the runs
        """Make no more runs, and close all connections.

        Runs that have not ended are left to other processes, or to the next start. If it was not started,
        this only closes the connections.

        Args:
            timeout: Seconds to wait for the runs that are being made.
        """
        if Started.runs is not self:
            await anyio.to_thread.run_sync(self._close)
            return
        with anyio.CancelScope(shield=True):
            # Otherwise a full queue would keep it busy until the time is over.
            await anyio.to_thread.run_sync(self._engine.take_no_more)
            await self._overseer.wait_for_end(timeout)
            self._overseer.is_stopping = True
            await anyio.to_thread.run_sync(self._stop)

    def _stop(self) -> None:
        try:
            self._overseer.end_all()
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

    async def begin(self, durable: Durable, run: Run, call_next: Next) -> None:
        """Make a run that begins here. For ``Durable``."""
        self._check_agent(run)
        check_context(run.context)
        check_session(run.agent.name, run.options.get("session"), durable.session)
        stored = stored_run(run, may_leave_out=durable.reload is not None).to_json()
        execution = Execution(run.id, self._steps, durable.once)

        async def live() -> str:
            token = current_execution.set(execution)
            try:
                return await self._execute(execution, run, call_next)
            finally:
                current_execution.reset(token)

        self._live[run.id] = live
        try:
            await self._engine.run(run.id, stored)
        except asyncio.CancelledError:
            if execution.failure is not None:
                self._overseer.leave(run.id)
                raise execution.failure from None
            if execution.is_lost:
                raise RunMovedError(run_id=run.id, reason=self._overseer.reason_of(run.id)) from None
            if not self._overseer.is_stopping and not sigterm.is_shutting_down():
                await self._cancelled(run.id)
            raise
        finally:
            self._live.pop(run.id, None)

    async def inside(self, execution: Execution, durable: Durable, run: Run, call_next: Next) -> None:
        """Make a run that belongs to a durable one: a recovered one, or one that a tool of it has begun."""
        execution.once |= durable.once
        if run.id == execution.root_id:
            execution.outcome = await self._execute(execution, run, call_next)
        else:
            self._keep(run, Journal(execution, run))
            await call_next(run)

    def _keep(self, run: Run, journal: Journal) -> None:
        run.journal = journal
        session = run.options.get("session")
        if session is not None and not isinstance(session, DurableSession):
            run.options["session"] = DurableSession(session, journal)

    async def _execute(self, execution: Execution, run: Run, call_next: Next) -> str:
        if not execution.is_open:
            await execution.begin()
        self._keep(run, Journal(execution, run))
        if execution.attempt > 1:
            record_recovery(run, execution.attempt, execution.stored, execution.elapsed)
            _log.info("run goes on", run_id=run.id, attempt=execution.attempt, steps=execution.stored)
        try:
            with self._overseer.watching(execution):
                await call_next(run)
                if getattr(run.result, "interruptions", None):
                    await store_waiting(run, self._approvals)
                return outcome_text(run)
        except Exception as error:
            failure = redacted_error(run, error)  # the engine stores it
            if failure is error:
                raise
        finally:
            execution.is_open = False
        raise failure  # here, as in the `except` block the original would become its context

    async def _make(self, run_id: str, stored: str) -> str:
        """Make a run for the engine: the one that has begun in this process, or one from its stored text."""
        live = self._live.pop(run_id, None)
        if live is not None:
            return str(await live())
        self._overseer.wait_for(asyncio.current_task())
        execution = Execution(run_id, self._steps, frozenset())
        token = current_execution.set(execution)
        try:
            await execution.begin()
            await self._again.run(execution, stored)
        except (UnknownDurableAgentError, StoredStepError, NotStorableError) as error:
            await anyio.to_thread.run_sync(self._set_aside, run_id, error)
            raise
        finally:
            current_execution.reset(token)
            execution.is_open = False
            if execution.failure is not None:
                self._overseer.leave(run_id)
        return execution.outcome

    def _set_aside(self, run_id: str, error: Exception) -> None:
        """Cancel a run that this process cannot make, so that it can be resumed in one that can."""
        self._engine.cancel(run_id)
        self._steps.release(run_id)
        self._steps.set_aside(run_id, str(error))
        _log.error("durable run cancelled, because it cannot be made here", run_id=run_id, error=str(error))

    async def _cancelled(self, run_id: str) -> None:
        """Let nobody go on with a run whose caller has cancelled it."""
        with anyio.CancelScope(shield=True):
            try:
                await self.cancel(run_id)
            except Exception as error:  # noqa: BLE001 - the cancellation itself must reach the caller
                _log.warning("cancelled run not marked", run_id=run_id, error=str(error))

    def _check_agent(self, run: Run) -> None:
        known = self._agents.get(run.agent.name)
        chosen_by = None if run.agent.arm_of is None else run.agent.arm_of()
        if known is None or known not in (run.agent, chosen_by):
            reason = (
                "it is not one of the agents= of the DurableRuns that is started, or another of its name is"
            )
            raise DurableNotStartedError(agent=run.agent.name, reason=reason)

    def __repr__(self) -> str:
        state = "started" if Started.runs is self else "not started"
        return f"DurableRuns({self._database.shown!r}, agents={list(self._agents)}, {state})"
