"""Durable runs as JSON data."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kantan_agents.durable.management import Management
from kantan_agents.durable.outcome import DurableRun
from kantan_agents.durable.storage.approvals import WaitingCall
from kantan_agents.durable.storage.events import StoredEvent


async def whole_run(runs: Management, run_id: str) -> dict[str, Any]:
    """Return a run with its calls and outcome; E154 if unknown."""
    run = await runs.get(run_id)
    calls = await runs.list_approvals(answered=True, run_id=run_id)
    outcome = await runs.outcome(run_id)
    return {
        **run_data(run),
        "approvals": [call_data(call) for call in calls],
        "next_run": await runs.next_run(run_id),
        "output": None if outcome is None else outcome.output,
        "trace_id": None if outcome is None else outcome.trace_id,
    }


def run_data(run: DurableRun) -> dict[str, Any]:
    """Return a run."""
    return {
        "run_id": run.run_id,
        "agent": run.agent,
        "status": run.status,
        "queue": run.queue,
        "created_at": _iso(run.created_at),
        "updated_at": _iso(run.updated_at),
        "error": run.error,
    }


def call_data(call: WaitingCall) -> dict[str, Any]:
    """Return a waiting or answered call."""
    return {
        "run_id": call.run_id,
        "call_id": call.call_id,
        "agent": call.agent,
        "tool": call.tool,
        "arguments": call.arguments,
        "asked_at": _iso(call.asked_at),
        "answer": call.answer,
        "answered_by": call.answered_by,
        "answered_at": _iso(call.answered_at),
    }


def event_data(event: StoredEvent) -> dict[str, Any]:
    """Return a stored event with its number."""
    return {"sequence": event.sequence, "event": dict(event.data)}


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
