"""How a durable run has ended, as it is stored and as it is returned."""

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
"""``"waiting"`` is for people. ``"parked"`` runs need a person: too many processes have ended while they made
the run, or the program cannot go on with what is stored."""


@attrs.frozen
class DurableOutcome:
    """How a durable run has ended.

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
    """A durable run.

    Attributes:
        run_id: Its id; ``agent_run_id`` in its trace.
        agent: Name of its agent.
        status: Whether it waits, is being made, or how it has ended.
        queue: The queue it came from; None for one that was begun where it was asked for.
        created_at: When it was begun or queued.
        updated_at: When its status changed last.
        error: The error with which it has failed, or why it is parked or is not made yet.
    """

    run_id: str
    agent: str
    status: Status
    queue: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    error: str | None = None


def outcome_text(run: Run) -> str:
    """Return how a run has ended as JSON text."""
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
    # Those with which `Redact` would put back what the output has placeholders for, as its user has chosen.
    originals = {key: context[key] for key in kept_keys(run.agent) if key in context}
    return dump({**body, "context": {**body["context"], **originals}})


def outcome_of(run_id: str, text: str) -> DurableOutcome:
    """Return what a text of ``outcome_text`` says.

    Raises:
        StoredStepError: E155, it is damaged, or a later version has written it.
    """
    body = load(run_id, "end", text)
    return DurableOutcome(
        run_id, body.get("output"), body.get("context") or {}, body.get("trace_id"), tuple(body["waiting"])
    )
