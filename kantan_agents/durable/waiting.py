"""Stores a durable run that waits for people."""

from __future__ import annotations

from typing import Any

import anyio.to_thread

from kantan_agents.durable.engines.engine import Job
from kantan_agents.durable.journal import inner_id
from kantan_agents.durable.storage.approvals import Approvals, WaitingRun
from kantan_agents.durable.stored_run import StoredRun, checked_options
from kantan_agents.interception import redacted_data
from kantan_agents.middleware.approve.state import pending
from kantan_agents.middleware.approve.stored import text_of
from kantan_agents.pipeline import Run


async def store_waiting(run: Run, approvals: Approvals) -> None:
    """Store a run whose result waits for approval of calls.

    Raises:
        ApprovalStateError: E85, its context has a value that JSON cannot represent.
    """
    key = await anyio.to_thread.run_sync(approvals.key)
    calls = [redacted_call(run, call) for call in pending(run.context)]
    given = dict(run.options)
    session: Any = given.pop("session", None)
    options = StoredRun(
        agent=run.agent.name,
        options=checked_options(run.agent.name, given),
        session=None if session is None else str(session.session_id),
        streamed=run.is_streamed,
        config={} if run.run_config.group_id is None else {"group_id": run.run_config.group_id},
    )
    waiting = WaitingRun(run.id, run.agent.name, text_of(run.context, [key]), options.to_json(), None, {})
    await anyio.to_thread.run_sync(approvals.wait, waiting, calls)


def redacted_call(run: Run, call: Any) -> Any:
    """Return a call as the people who are asked may see it."""
    import attrs

    return attrs.evolve(call, arguments=redacted_data(run, call.arguments))


def job_of(waiting: WaitingRun, queue: str) -> Job:
    """Return the run that goes on with one whose calls have been answered."""
    import attrs

    stored = StoredRun.of_json(waiting.run_id, waiting.options)
    next_id = inner_id(waiting.run_id, "goes on")
    return Job(next_id, attrs.evolve(stored, waited_for=waiting.run_id).to_json(), waiting.queue or queue)
