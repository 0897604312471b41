"""Executes durable runs in this process."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, Final

import anyio
import anyio.to_thread
from agents import ModelBehaviorError, RunState

from kantan_agents.core.context import check_context
from kantan_agents.core.interception import redacted_error
from kantan_agents.core.pipeline import Next, Run
from kantan_agents.durable.execution import Execution, current_execution
from kantan_agents.durable.journal import Journal
from kantan_agents.durable.management import Management
from kantan_agents.durable.middleware import Durable, durable_of
from kantan_agents.durable.outcome import outcome_text
from kantan_agents.durable.overseer import Overseer
from kantan_agents.durable.patience import patiently
from kantan_agents.durable.restart import Restart
from kantan_agents.durable.session import DurableSession, check_session
from kantan_agents.durable.step_bodies import message_of
from kantan_agents.durable.stored_run import stored_run
from kantan_agents.durable.waiting import store_waiting
from kantan_agents.errors import (
    CommandNotRunnableError,
    CommandSyntaxError,
    DurableDatabaseError,
    DurableNotStartedError,
    KantanAgentsError,
    MCPServerUnavailableError,
    NotStorableError,
    RunMovedError,
    StoredStepError,
    UnknownCommandError,
    UnknownDurableAgentError,
)
from kantan_agents.middleware.slash_commands.slash_commands import SlashCommands
from kantan_agents.support.log import get_logger
from kantan_agents.support.secrets import mask
from kantan_agents.traces.recorder import sigterm
from kantan_agents.traces.spans import record_recovery

_log = get_logger("kantan_agents.durable")
_OF_COMMANDS: Final = (UnknownCommandError, CommandSyntaxError, CommandNotRunnableError)


class Making(Management):
    """The part of ``DurableRuns`` that executes runs."""

    _overseer: Overseer
    _restart: Restart
    _agents: dict[str, Any]
    _live: dict[str, Any]

    async def begin(self, durable: Durable, run: Run, call_next: Next) -> None:
        """Execute a run that starts here. For ``Durable``."""
        self._check_agent(run)
        check_context(run.context)
        check_session(run.agent.name, run.options.get("session"), durable.session)
        begun = stored_run(run, may_leave_out=durable.reload is not None)
        stored = begun.to_json()
        execution = Execution(run.id, self._steps, durable.once)
        execution.begun = begun

        async def live() -> str:
            token = current_execution.set(execution)
            try:
                execution.outcome = await self._execute(execution, run, call_next)
            finally:
                current_execution.reset(token)
            return execution.outcome

        self._live[run.id] = live
        try:
            await self._begin_in_engine(run.id, stored, execution)
        except DurableDatabaseError:
            if run.id not in self._live:
                self._overseer.leave()
            raise
        except asyncio.CancelledError:
            if execution.failure is not None:
                self._overseer.leave()
                raise execution.failure from None
            if execution.is_lost:
                raise RunMovedError(run_id=run.id, reason=self._overseer.reason_of(run.id)) from None
            if not self._overseer.is_stopping and not sigterm.is_shutting_down():
                await self._cancelled(run.id)
            raise
        finally:
            self._live.pop(run.id, None)

    async def _begin_in_engine(self, run_id: str, stored: str, execution: Execution) -> None:
        tries = 0

        async def attempt() -> None:
            nonlocal tries
            tries += 1
            if tries > 1 and await self._in_thread(lambda: self._engine.find(run_id)) is not None:
                del self._live[run_id]  # stored, although the answer was lost: it resumes as a recovered one
                reason = "it went away as the run began, which goes on: DurableRuns.result waits for it"
                raise DurableDatabaseError(database=self._database.shown, reason=reason)
            await self._engine.run(run_id, stored)

        try:
            await patiently(attempt, lambda: run_id in self._live)
        except DurableDatabaseError as error:
            if not (error.is_away and execution.outcome):
                raise
            # Ended, but its outcome is not stored: another attempt replays its steps and stores it.
            self._overseer.leave()
            await patiently(partial(self._check_finished, run_id))

    async def _check_finished(self, run_id: str) -> None:
        found = await self._in_thread(partial(self._engine.find, run_id))
        if found is None or found.status != "finished":
            reason = "the run has ended, but that is not stored: DurableRuns.result waits until it is"
            failure = DurableDatabaseError(database=self._database.shown, reason=reason)
            failure.is_away = True
            raise failure

    async def inside(self, execution: Execution, durable: Durable, run: Run, call_next: Next) -> None:
        """Execute a recovered run, or one inside a durable run."""
        execution.once |= durable.once
        if run.id == execution.root_id:
            execution.outcome = await self._execute(execution, run, call_next)
        else:
            self._keep(run, Journal(execution, run))
            await call_next(run)

    def _keep(self, run: Run, journal: Journal) -> None:
        run._journal = journal
        session = run.options.get("session")
        if session is not None and not isinstance(session, DurableSession):
            run.options["session"] = DurableSession(session, journal)

    async def _execute(self, execution: Execution, run: Run, call_next: Next) -> str:
        if not execution.is_open:
            await execution.begin()
        journal = Journal(execution, run)
        self._keep(run, journal)
        is_command = any(
            isinstance(one, SlashCommands) and one.has_command(run) for one in run.agent.layers.middleware
        )
        if execution.attempt > 1:
            journal.check_command(is_command=is_command)
        elif is_command or (execution.once and isinstance(run.input, RunState)):
            await journal.note_begin(is_command=is_command)
        if execution.attempt > 1:
            record_recovery(run, execution.attempt, execution.stored, execution.elapsed)
            _log.info("run goes on", run_id=run.id, attempt=execution.attempt, steps=execution.stored)
        try:
            with self._overseer.watching(execution):
                await call_next(run)
                waiting = getattr(run.result, "interruptions", None)
                if waiting:
                    journal.check_waiting(waiting)
                    durable = durable_of(run.agent)
                    may_leave_out = durable is not None and durable.reload is not None
                    await store_waiting(run, self._approvals, execution, may_leave_out=may_leave_out)
                return outcome_text(run)
        except Exception as error:
            failure = redacted_error(run, error)  # the engine stores it
            if failure is error:
                raise
        finally:
            execution.is_open = False
        raise failure  # in the `except` block, the original would become its context

    async def _make(self, run_id: str, stored: str) -> str:
        live = self._live.pop(run_id, None)
        if live is not None:
            return str(await live())
        self._overseer.wait_for(asyncio.current_task())
        execution = Execution(run_id, self._steps, frozenset())
        execution.is_begun_here = False
        token = current_execution.set(execution)
        try:
            await execution.begin()
            await self._go_on(execution, stored)
        except (UnknownDurableAgentError, StoredStepError, NotStorableError) as error:
            await anyio.to_thread.run_sync(self._set_aside, run_id, error)
            raise
        except asyncio.CancelledError as error:
            if execution.is_lost or self._overseer.is_stopping or _is_cancelled():
                raise
            # No other process would take the run: this one is alive.
            raise RuntimeError("it was cancelled from inside") from error
        finally:
            current_execution.reset(token)
            execution.is_open = False
            if execution.failure is not None:
                self._overseer.leave()
        return execution.outcome

    async def _go_on(self, execution: Execution, stored: str) -> None:
        try:
            await self._restart.run(execution, stored)
        except (Exception, asyncio.CancelledError) as error:
            if _may_pass_elsewhere(execution, error):
                execution.give_up("begin", f"this process cannot follow what was done before: {error}")
            if execution.unusable is None:
                raise
        if execution.unusable is not None:  # even if the SDK or a tool has converted the error to text
            raise execution.unusable

    def _set_aside(self, run_id: str, error: Exception) -> None:
        reason = mask(message_of(error))
        self._steps.set_aside(run_id, reason)  # before a caller can see the cancellation
        self._steps.release(run_id)  # before another process can have resumed it
        self._engine.cancel(run_id)
        _log.error("durable run parked, because it cannot be made here", run_id=run_id, error=reason)

    async def _cancelled(self, run_id: str) -> None:
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


def _may_pass_elsewhere(execution: Execution, error: BaseException) -> bool:
    if execution.attempt == 1 or execution.has_asked:
        return False
    # Such as a call of a shell that is gone.
    is_of_sdk = isinstance(error, ModelBehaviorError) and not isinstance(error, KantanAgentsError)
    return is_of_sdk or isinstance(error, (MCPServerUnavailableError, *_OF_COMMANDS))


def _is_cancelled() -> bool:
    """Return whether this task was canceled; True on Python 3.10, which cannot tell."""
    task = asyncio.current_task()
    cancelling = getattr(task, "cancelling", None)
    return cancelling is None or bool(cancelling())
