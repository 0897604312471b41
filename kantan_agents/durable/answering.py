"""``Answering``: what people are asked about durable runs, and their answers."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from kantan_agents.durable.opened import Opened
from kantan_agents.durable.storage.approvals import WaitingCall
from kantan_agents.durable.waiting import job_of
from kantan_agents.errors import ApprovalAnswerError, InvalidOptionError, KantanAgentsError
from kantan_agents.middleware.approve.calls import Approved, Decision, Rejected
from kantan_agents.support.log import get_logger

_log = get_logger("kantan_agents.durable")


class Answering(Opened):
    """The part of ``DurableRuns`` for people who approve tool calls."""

    async def list_approvals(self, *, answered: bool = False, run_id: str | None = None) -> list[WaitingCall]:
        """Return the calls that wait for a person, the oldest first.

        Args:
            answered: Whether to return those too that were answered.
            run_id: Only those of this run.
        """
        return await self._in_thread(lambda: self._approvals.calls(answered=answered, run_id=run_id))

    async def approve(
        self, run_id: str, call_id: str | None = None, *, by: str, arguments: Any = None
    ) -> None:
        """Approve a call that waits. When all calls of a run are answered, a free process goes on with it.

        Args:
            run_id: Id of the run.
            call_id: Id of the call; None if only one waits.
            by: Who approves it; stored with the answer.
            arguments: Arguments that replace the model's, as for ``Approved``.

        Raises:
            ApprovalAnswerError: E158, no such call waits, or it was answered before.
            InvalidOptionError: E75, ``arguments`` is not a JSON object, or ``by`` names nobody.
        """
        await self._answer(run_id, call_id, Approved(arguments), by)

    async def reject(
        self, run_id: str, call_id: str | None = None, *, by: str, reason: str | None = None
    ) -> None:
        """Reject a call that waits; the model gets the reason as its result. Otherwise as ``approve``."""
        await self._answer(run_id, call_id, Rejected() if reason is None else Rejected(reason), by)

    async def _answer(self, run_id: str, call_id: str | None, decision: Decision, by: str) -> None:
        if not isinstance(by, str) or not by.strip():
            raise InvalidOptionError(option="by", reason=f"must say who answers, not {by!r}")

        def answer() -> None:
            self._approvals.answer(run_id, call_id or self._only_call(run_id), decision, by)
            with suppress(Exception):  # a process that is started looks for answers too
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
        """Queue the runs whose calls have all been answered; return how many these are."""
        return sum(self._goes_on(run_id) for run_id in self._approvals.answered())

    def _goes_on(self, run_id: str) -> bool:
        waiting = self._approvals.find(run_id)
        # The engine finds the runs of its application only. Those of others go on there.
        if waiting is None or self._engine.find(run_id) is None:
            return False
        try:
            job = job_of(waiting)
        except KantanAgentsError as error:  # of a later version: it must not keep the others waiting
            _log.warning("answered run does not go on", run_id=run_id, error=str(error))
            return False
        # First queued, then noted: a process that ends between the two leaves it to the next look, and a run
        # of the same id is not queued twice.
        self._approvals.goes_on(run_id, self._engine.enqueue_now(job))
        return True
