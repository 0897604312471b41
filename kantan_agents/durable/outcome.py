"""The outcome of a durable run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

import attrs

from kantan_agents.core.interception import redacted_data
from kantan_agents.core.pipeline import Run
from kantan_agents.durable.step_bodies import dump, is_plain, load
from kantan_agents.durable.stored_run import kept_keys
from kantan_agents.models.structured import json_data

Status = Literal["queued", "running", "waiting", "finished", "failed", "cancelled", "parked"]
"""``"waiting"`` is for an approval; ``"parked"`` runs need a person.

Too many processes have ended during a parked run, or the program cannot continue it.
"""


@attrs.frozen
class DurableOutcome:
    """The result of a durable run, or the calls that it waits for.

    Attributes:
        run_id: Its id; ``agent_run_id`` in its trace.
        output: The final output; a structured output as a dict. None while the run waits.
        context: Its context, without the values that JSON cannot represent.
        trace_id: Id of its trace; None without tracing.
        waiting: Ids of the calls that wait for approval.
    """

    run_id: str
    output: Any
    context: Mapping[str, Any] = attrs.field(repr=False)
    trace_id: str | None = None
    waiting: tuple[str, ...] = ()


@attrs.frozen
class DurableRun:
    """A stored durable run, with its status.

    Attributes:
        run_id: Its id; ``agent_run_id`` in its trace.
        agent: Name of its agent.
        status: Whether it waits or is active, or its outcome.
        queue: The queue it came from; None for a run started without a queue.
        created_at: Time at which it was started or queued.
        updated_at: Time of the last change of its status.
        error: The error of a failed run, or the reason why it is parked or has not started yet.
    """

    run_id: str
    agent: str
    status: Status
    queue: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    error: str | None = None


def outcome_text(run: Run) -> str:
    """Return the outcome of a run as JSON."""
    result = run.result
    pending = getattr(result, "interruptions", None) or ()
    context = {key: value for key, value in run.context.items() if key != "result" and is_plain(value)}
    body = {
        "output": None if pending else json_data(getattr(result, "final_output", result)),
        "context": context,
        "trace_id": run.trace_id,
        "waiting": [item.call_id or "" for item in pending],
    }
    body = redacted_data(run, body)
    # By its user's choice, `Redact` may restore the placeholders from these.
    originals = {key: context[key] for key in kept_keys(run.agent) if key in context}
    return dump({**body, "context": {**body["context"], **originals}})


def outcome_of(run_id: str, text: str) -> DurableOutcome:
    """Return the outcome in a string of ``outcome_text``; raises E155."""
    body = load(run_id, "end", text)
    return DurableOutcome(
        run_id, body.get("output"), body.get("context") or {}, body.get("trace_id"), tuple(body["waiting"])
    )
