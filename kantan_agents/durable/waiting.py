"""Stores waiting runs."""

from __future__ import annotations

from typing import Any

import attrs

from kantan_agents.core.interception import redacted_data
from kantan_agents.core.pipeline import Run
from kantan_agents.durable.engines.engine import Job, resumed_queue
from kantan_agents.durable.execution import Execution
from kantan_agents.durable.storage.approvals import ApprovalStore, WaitingRun
from kantan_agents.durable.stored_run import StoredRun, kept_keys, stored_context
from kantan_agents.durable.tool_journal import inner_id
from kantan_agents.middleware.approve.stored_runs import text_of
from kantan_agents.middleware.approve.waiting_runs import pending


async def store_waiting(
    run: Run, approvals: ApprovalStore, execution: Execution, *, may_leave_out: bool
) -> None:
    """Store a run that waits for approvals; raises E85 or E151."""
    key = await execution.call(approvals.key)
    calls = [_redacted(run, call) for call in pending(run.context)]
    kept = kept_keys(run.agent)
    left_out = stored_context(
        run.agent.name,
        run.context,
        lambda data: redacted_data(run, data),
        kept,
        may_leave_out=may_leave_out,
    )["left_out"]
    begun: StoredRun = execution.begun
    # All but the conversation, which the signed state has. Original options, as middleware changes them
    # again.
    options = attrs.evolve(
        begun, input=None, state=None, edits={}, context={}, permissions={}, left_out=left_out
    )
    text = text_of(run.context, [key], left_out)
    waiting = WaitingRun(run.id, run.agent.name, text, options.to_json(), execution.queue, {})
    await execution.call(lambda: approvals.wait(waiting, calls))


def _redacted(run: Run, call: Any) -> Any:
    return attrs.evolve(call, arguments=redacted_data(run, call.arguments))


def job_of(waiting: WaitingRun) -> Job:
    """Return the next run of an answered one; E155 if it is unreadable."""
    stored = StoredRun.of_json(waiting.run_id, waiting.options)
    text = attrs.evolve(stored, waited_for=waiting.run_id).to_json()
    queue = waiting.queue or resumed_queue(waiting.agent)
    return Job(inner_id(waiting.run_id, "goes on"), text, queue, tenant=stored.tenant)
