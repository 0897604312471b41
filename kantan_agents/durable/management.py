"""Operations on durable runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any

from kantan_agents.durable.engines.engine import Job, agent_in, resumed_queue
from kantan_agents.durable.event_keeper import ENDS
from kantan_agents.durable.listed_runs import ENDED, ListedRuns
from kantan_agents.durable.middleware import check_names
from kantan_agents.durable.outcome import DurableOutcome, outcome_of
from kantan_agents.durable.storage.approvals import CLOSED, WaitingCall
from kantan_agents.durable.storage.events import StoredEvent
from kantan_agents.durable.stored_run import StoredRun, stored_context
from kantan_agents.durable.waiting import job_of
from kantan_agents.errors import (
    ApprovalAnswerError,
    DurableRunFailedError,
    InvalidOptionError,
    KantanAgentsError,
    RunMovedError,
)
from kantan_agents.middleware.approve.calls import Approved, Decision, Rejected
from kantan_agents.support.log import get_logger

_log = get_logger("kantan_agents.durable")

_POLL_SECONDS = 0.1
_LAST_LOOKS = 20
_PRUNED = 500


class Management(ListedRuns):
    """Operations on the durable runs of a database, started or not."""

    async def result(self, run_id: str, *, timeout: float | None = None) -> DurableOutcome:
        """Wait until a run has ended, in whichever process, and return its outcome.

        If it waits for an approval, this waits for the run that continues it.

        Args:
            run_id: Its id.
            timeout: Seconds to wait at most; None without a limit.

        Raises:
            DurableRunNotFoundError: E154, no run has this id.
            DurableRunFailedError: E159, it has failed, or it was canceled or parked.
            TimeoutError: It has not ended in time.
        """
        if timeout is not None:
            return await asyncio.wait_for(self.result(run_id), timeout)
        while True:
            await self._poller.wait(run_id, "has ended")
            found = await self._in_thread(partial(self._found, run_id))
            if found.status == "finished" and found.outcome is not None:
                outcome = outcome_of(run_id, found.outcome)
                if not outcome.waiting:
                    return outcome
                next_id = await self._in_thread(partial(self._approvals.next_of, run_id))
                if next_id == CLOSED:
                    reason = "while it waited for people"
                    raise DurableRunFailedError(run_id=run_id, status=_HAS["cancelled"], reason=reason)
                if next_id is not None:
                    run_id = next_id
                else:
                    await self._poller.wait(run_id, "goes on")
            elif found.status in ENDED:
                run = await self.get(run_id)
                reason = run.error or (_TOO_MANY if run.status == "parked" else "")
                reason = reason or f"`kantan-agents runs resume {run_id}` lets it go on"
                raise DurableRunFailedError(run_id=run_id, status=_HAS[run.status], reason=reason)

    async def outcome(self, run_id: str) -> DurableOutcome | None:
        """Return the outcome of a run, without waiting; None unless it has ended successfully.

        Raises:
            DurableRunNotFoundError: E154, no run has this id.
        """
        found = await self._in_thread(lambda: self._found(run_id))
        return None if found.outcome is None else outcome_of(run_id, found.outcome)

    async def next_run(self, run_id: str) -> str | None:
        """Return the run that continues one which has waited for an approval; None if there is none."""
        next_id = await self._in_thread(lambda: self._approvals.next_of(run_id))
        return None if next_id == CLOSED else next_id

    async def list_approvals(self, *, answered: bool = False, run_id: str | None = None) -> list[WaitingCall]:
        """Return the calls that wait for an approval, the oldest first.

        Args:
            answered: Whether to return answered calls too.
            run_id: Only calls of this run.
        """
        return await self._in_thread(lambda: self._approvals.calls(answered=answered, run_id=run_id))

    async def approve(
        self, run_id: str, call_id: str | None = None, *, by: str, arguments: Any = None
    ) -> None:
        """Approve a waiting call. When all calls of a run are answered, a free process continues it.

        Args:
            run_id: Id of the run.
            call_id: Id of the call; None if only one waits.
            by: Who approves it; stored with the answer.
            arguments: Arguments that replace the model's, as for ``Approved``.

        Raises:
            ApprovalAnswerError: E158, no such call waits, or it was answered before.
            InvalidOptionError: E75, ``arguments`` is not a JSON object, or ``by`` is not a name.
        """
        await self._answer(run_id, call_id, Approved(arguments), by)

    async def reject(
        self, run_id: str, call_id: str | None = None, *, by: str, reason: str | None = None
    ) -> None:
        """Reject a waiting call; the model gets the reason as its result. Otherwise as ``approve``."""
        await self._answer(run_id, call_id, Rejected() if reason is None else Rejected(reason), by)

    async def _answer(self, run_id: str, call_id: str | None, decision: Decision, by: str) -> None:
        if not isinstance(by, str) or not by.strip():
            raise InvalidOptionError(option="by", reason=f"must say who answers, not {by!r}")

        def answer() -> None:
            self._approvals.answer(run_id, call_id or self._only_call(run_id), decision, by)
            with suppress(Exception):  # a started process looks for answers too
                self.go_on_answered()

        await self._in_thread(answer)

    def _only_call(self, run_id: str) -> str:
        waiting = self._approvals.calls(run_id=run_id)
        if len(waiting) == 1:
            return waiting[0].call_id
        ids = ", ".join(call.call_id for call in waiting)
        reason = f"{len(waiting)} calls wait, name one: {ids}" if waiting else "none of its calls waits"
        raise ApprovalAnswerError(run_id=run_id, call_id="", reason=reason)

    def go_on_answered(self) -> int:
        """Queue the runs whose calls have all been answered; return their number."""
        return sum(self._goes_on(run_id) for run_id in self._approvals.answered())

    def _goes_on(self, run_id: str) -> bool:
        waiting = self._approvals.find(run_id)
        # Runs of other applications continue there.
        if waiting is None or self._engine.find(run_id) is None:
            return False
        try:
            job = job_of(waiting)
        except KantanAgentsError as error:  # of a later version: it must not block the others
            _log.warning("answered run does not go on", run_id=run_id, error=str(error))
            return False
        # First queued, then noted: if the process ends in between, the next look repeats both, and the id is
        # not queued twice.
        next_id = self._engine.enqueue_now(job)
        if self._approvals.goes_on(run_id, next_id):
            self._engine.cancel(next_id)
            self._steps.release(next_id)
        return True

    async def cancel(self, run_id: str) -> None:
        """Prevent a run from starting or resuming; a process that executes it cancels it within a second.

        Raises:
            DurableRunNotFoundError: E154, no run has this id.
            RunMovedError: E157, it has ended.
        """

        def cancel() -> None:
            found = self._found(run_id)
            if self._approvals.close(run_id):
                return
            status = self._shown([found])[0].status
            if status in ENDED and status != "parked":
                reason = f"it has {_HAS[status]} already, so there is nothing to cancel"
                raise RunMovedError(run_id=run_id, reason=reason)
            self._engine.cancel(run_id)
            self._steps.release(run_id)
            self._steps.set_aside(run_id, None)

        await self._in_thread(cancel)

    async def resume(self, run_id: str, *, queue: str | None = None) -> None:
        """Resume a run that was canceled or parked, in a started process.

        A run that was canceled while it waited for an approval waits for it again.

        Args:
            run_id: Its id.
            queue: The queue that it is added to; None means its former queue, or any process with the same
                ``application``.

        Raises:
            DurableRunNotFoundError: E154, no run has this id.
            RunMovedError: E157, it is in another state.
            InvalidOptionError: E75, the queue has no name.
        """
        if queue is not None:
            check_names(queue=queue)

        def resume() -> None:
            found = self._found(run_id)
            if self._approvals.reopen(run_id, queue):
                return
            if found.status not in ("cancelled", "parked"):
                status = self._shown([found])[0].status
                reason = f"it is {status}; only runs that were cancelled or parked can be resumed"
                raise RunMovedError(run_id=run_id, reason=reason)
            own = StoredRun.of_json(run_id, found.stored or "").queue
            self._engine.resume(run_id, queue or found.queue or own or resumed_queue(agent_in(found.stored)))

        await self._in_thread(resume)

    async def prune(self, *, older_than: timedelta) -> int:
        """Delete the stored data of runs that have ended long ago; return their number.

        Firings of schedules from before are deleted too. Runs that wait for an approval, or that are parked,
        stay.

        Args:
            older_than: The least time since their end.
        """

        def prune() -> int:
            moment, count = datetime.now(timezone.utc) - older_than, 0
            self._engine.forget_firings(moment)
            kept: set[str] = set()
            while True:
                found = [
                    run for run in self._engine.ended_before(moment, _PRUNED + len(kept)) if run not in kept
                ]
                kept |= self._kept(found) if found else set()
                ended = [run for run in found if run not in kept]
                if not ended:
                    return count
                self._steps.forget(ended)
                self._engine.forget(ended)
                count += len(ended)

        return await self._in_thread(prune)

    def _kept(self, run_ids: Sequence[str]) -> set[str]:
        kept = set(self._steps.reasons(run_ids))
        for run_id, next_id in self._approvals.waited_among(run_ids).items():
            following = None if next_id in (None, CLOSED) else self._engine.find(next_id)
            # A run that was cancelled or parked needs it to be resumed.
            if next_id is None or (following is not None and following.status not in ("finished", "failed")):
                kept.add(run_id)
        return kept

    async def events(self, run_id: str, *, after: int = 0, follow: bool = True) -> AsyncIterator[StoredEvent]:
        """Yield the stored events of a run as they arrive, until it has ended.

        An interrupted reader resumes after the last number it saw, and misses nothing.

        Args:
            run_id: Id of the run.
            after: Yield only events with larger numbers; 0 yields all.
            follow: Whether to wait for more events; otherwise only the events stored now are yielded.

        Raises:
            DurableRunNotFoundError: E154, no run has this id.
        """
        await self.get(run_id)
        is_settled, has_ended, looks = False, False, 0
        while True:
            found = await self._in_thread(partial(self._events.after, run_id, after))
            for event in found:
                after, looks = event.sequence, 0
                has_ended = event.data["type"] in ENDS and event.data["run_id"] == run_id
                yield event
            if found:
                continue
            if not follow or (is_settled and (has_ended or looks >= _LAST_LOOKS)):
                return
            if is_settled:  # the last events are stored shortly after the run has ended
                looks += 1
                await asyncio.sleep(_POLL_SECONDS)
            else:
                answer = await self._poller.wait(run_id, "has events", "has ended", after=after)
                is_settled = answer == "has ended"

    async def schedule(
        self,
        name: str,
        cron: str,
        agent: str,
        input: str,
        *,
        queue: str,
        context: Mapping[str, Any] | None = None,
        timezone: str | None = None,
    ) -> None:
        """Queue a run whenever a cron expression matches. A schedule of the same name is replaced.

        Args:
            name: Name of the schedule.
            cron: The expression, such as ``"0 9 * * mon-fri"``; with six fields, the first are seconds.
            agent: Name of the agent.
            input: The input of each run.
            queue: The queue.
            context: The context of each run, JSON data.
            timezone: IANA name of the time zone of the expression; None means UTC.

        Raises:
            InvalidOptionError: E75, a name, the expression or the time zone is not valid.
            NotStorableError: E151, the context is not JSON data.
        """
        if not isinstance(agent, str) or not isinstance(input, str):
            raise InvalidOptionError(
                option="agent", reason="must be the name of an agent, and its input a str"
            )
        check_names(name=name, queue=queue)
        checked = stored_context(agent, context or {}, lambda value: value, may_leave_out=False)
        stored = StoredRun(agent=agent, input=input, queue=queue, **checked).to_json()

        def schedule() -> None:
            try:
                self._engine.schedule(name, cron, queue, stored, timezone)
            except ValueError as error:
                raise InvalidOptionError(option="cron", reason=str(error)) from error

        await self._in_thread(schedule)

    async def unschedule(self, name: str) -> None:
        """Remove a schedule.

        Raises:
            InvalidOptionError: E75, it is not a name.
        """
        check_names(name=name)
        await self._in_thread(lambda: self._engine.unschedule(name))

    async def enqueue(self, job: Job) -> str:
        """Add a stored run to a queue; return its id. ``Agent.enqueue`` makes the job."""
        return await self._in_thread(lambda: self._engine.enqueue_now(job))


_TOO_MANY = "too many processes have ended while they made it. `kantan-agents runs resume` lets it go on"
_HAS = {
    "finished": "finished",
    "failed": "failed",
    "cancelled": "been cancelled",
    "parked": "been parked",
}
