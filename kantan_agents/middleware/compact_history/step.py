"""``Step``: plans, summarizes and reports one model call."""

from __future__ import annotations

from typing import Any

import attrs
from agents import custom_span

from kantan_agents.core.events import HistoryCompacted
from kantan_agents.core.interception import ModelCall, ModelNext
from kantan_agents.core.pipeline import loggable
from kantan_agents.errors import (
    AgentPainException,
    AnswerCutOffError,
    KantanAgentsError,
    ModelNotConfiguredError,
    ProviderRequestError,
    RequestTooLongError,
    StructuredOutputError,
)
from kantan_agents.middleware.compact_history.plan import CompactionPlan
from kantan_agents.middleware.compact_history.recorded_plans import RecordedPlan
from kantan_agents.middleware.compact_history.request import CallRequest
from kantan_agents.middleware.compact_history.shorten import shortened
from kantan_agents.middleware.compact_history.summarize import Summarizer, summary_of
from kantan_agents.middleware.compact_history.tool_results import is_stub
from kantan_agents.support.log import get_logger

SPAN = "compact_history"

_MODEL_SPECIFIC = (
    StructuredOutputError,
    ProviderRequestError,
    AgentPainException,
    AnswerCutOffError,
    ModelNotConfiguredError,
)
_log = get_logger("kantan_agents.middleware")


class Step:
    """Plans, summarizes and reports one model call."""

    def __init__(
        self,
        call: ModelCall,
        call_next: ModelNext,
        summarizer: Summarizer | None,
        *,
        window: int,
        raises: bool,
    ) -> None:
        self._call = call
        self._call_next = call_next
        self._summarizer = summarizer
        self._window = window
        self._raises = raises

    async def plan_for(self, request: CallRequest) -> CompactionPlan:
        """Return the plan; E177 if the request stays too long."""
        before = request.plan
        recorded = self._recorded(request)
        if recorded is not None:
            return await self._as_recorded(request, before, recorded)
        wanted = self._wanted(request, before)
        if request.sent(before).size > request.limits.begin:
            self._check(request, before, wanted)
        if wanted == before:
            return before
        grows = self._summarizer is not None and wanted.removed > before.removed
        return await self._reported(request, before, wanted, is_to_be_summarized=grows)

    def _wanted(self, request: CallRequest, before: CompactionPlan) -> CompactionPlan:
        """Newly omitted items are not summarized yet."""
        sent = request.sent(before)
        if sent.size <= request.limits.begin:
            return before
        return shortened(
            request.conversation,
            before,
            request.limits,
            size=sent.size,
            ratio=sent.ratio,
            summarizes=self._summarizer is not None,
        )

    def _recorded(self, request: CallRequest) -> RecordedPlan | None:
        plans = request.memory.recorded
        if plans is None:
            return None
        by_agent = self._summarizer is not None and self._summarizer.agent is not None
        return plans.find(self._call, request.conversation.items, by_agent=by_agent)

    async def _as_recorded(
        self, request: CallRequest, before: CompactionPlan, recorded: RecordedPlan
    ) -> CompactionPlan:
        """Request a summary only if the recorded run did."""
        plan = recorded.plan
        if plan == before:
            return before
        if recorded.was_asked and plan.removed > before.removed and self._summarizer is not None:
            unread = before.unread + len(plan.removed) - len(before.removed)
            wanted = attrs.evolve(plan, summary=before.summary, unread=unread)
            return await self._reported(request, before, wanted, is_to_be_summarized=True)
        if plan == self._wanted(request, before):
            return await self._reported(request, before, plan)
        request.keep(plan, is_shared=False)  # the plan of an earlier run
        return plan

    def _check(self, request: CallRequest, before: CompactionPlan, wanted: CompactionPlan) -> None:
        size = _size_after(request, before, wanted)
        if size <= request.limits.most:
            return
        if self._raises:
            raise RequestTooLongError(model=request.model, tokens=size, limit=request.limits.most)
        message = "a request is too long and cannot be shortened"
        _log.warning(message, run_id=self._call.run.id, tokens=size, limit=request.limits.most)

    async def _reported(
        self,
        request: CallRequest,
        before: CompactionPlan,
        wanted: CompactionPlan,
        *,
        is_to_be_summarized: bool = False,
    ) -> CompactionPlan:
        call = self._call
        names: dict[str, Any] = {"model": request.model, "limit": request.limits.most}
        error: Exception | None = None
        with custom_span(SPAN, {"agent": call.agent, **names}) as span:
            if is_to_be_summarized:
                try:
                    wanted = await self._summarized(request, before, wanted)
                except Exception as raised:
                    if isinstance(raised, KantanAgentsError) and not isinstance(raised, _MODEL_SPECIFIC):
                        raise
                    error = raised
                    message = "a summary failed, so turns are left out without it"
                    _log.warning(message, run_id=call.run.id, error=loggable(raised))
            facts = {**names, **_facts(request, before, wanted, error)}
            # The key in traces, which other tools read.
            stored = {
                "is_summarised" if name == "is_summarized" else name: fact for name, fact in facts.items()
            }
            span.span_data.data.update(stored)
        _log.info("history compacted", run_id=call.run.id, agent=call.agent, **facts)
        request.keep(wanted, is_shared=error is None)
        if call.run.events is not None:
            await call.run.events.emit(HistoryCompacted, agent=call.agent, **facts)
        return wanted

    async def _summarized(
        self, request: CallRequest, before: CompactionPlan, wanted: CompactionPlan
    ) -> CompactionPlan:
        assert self._summarizer is not None
        read = before.removed if before.summary is not None and not before.unread else frozenset()
        places = sorted(wanted.removed - read)
        items = request.conversation.items
        journal, kept_as = self._call.run._journal, None
        if journal is not None and self._summarizer.agent is not None:
            # The run stores its own model calls. The run of an agent is not part of it.
            kept_as = f"compact_history/{request.limits.most}/{request.digests[wanted.covers - 1].hex()}"
            known = journal.known(kept_as)
            if known is not None:
                return attrs.evolve(wanted, summary=known["summary"], unread=0)
        summary = await summary_of(
            [items[place] for place in places],
            before.summary if read else None,
            ask=self._summarizer.asks(self._call, self._call_next),
            most=request.limits.summary,
            window=self._window,
        )
        if journal is not None and kept_as is not None:
            await journal.keep(kept_as, {"summary": summary})
        return attrs.evolve(wanted, summary=summary, unread=0)


def _facts(
    request: CallRequest, before: CompactionPlan, plan: CompactionPlan, error: Exception | None
) -> dict[str, Any]:
    stubs = sum(map(is_stub, plan.replaced.values()))
    return {
        "tokens_before": round(request.sent(before).size),
        "tokens_after": _size_after(request, before, plan),
        "results_removed": stubs,
        "results_cut": len(plan.replaced) - stubs,
        "items_removed": len(plan.removed),
        "is_summarized": plan.summary is not None,
        "error_type": None if error is None else type(error).__name__,
    }


def _size_after(request: CallRequest, before: CompactionPlan, plan: CompactionPlan) -> int:
    sent = request.sent(before)
    return round(sent.size - sent.ratio * (sent.estimate - request.estimate(plan)))
