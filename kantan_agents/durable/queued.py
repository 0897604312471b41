"""``queued_job``: a run that a worker is to make, from the arguments of ``Agent.enqueue``."""

from __future__ import annotations

from typing import Any

from kantan_agents.durable.engines.engine import Job
from kantan_agents.durable.stored_run import StoredRun, checked_options, kept_keys, owner_of, stored_context
from kantan_agents.errors import InputTypeError, InvalidOptionError, NotStorableError
from kantan_agents.middleware.redact.redact import Redact
from kantan_agents.support.arguments import checked_int, checked_number
from kantan_agents.traces.ids import new_run_id

_LONGEST = 200


def queued_job(
    agent: Any,
    input: Any,
    context: dict[str, Any] | None,
    *,
    may_leave_out: bool,
    queue: str,
    priority: int | None,
    dedup_key: str | None,
    tenant: str | None,
    delay: float | None,
    run_options: dict[str, Any],
) -> Job:
    """Return the run as it is put into a queue.

    Raises:
        InputTypeError: E78, the input is neither a str nor a list.
        InvalidOptionError: E75, an option has an invalid value.
        NotStorableError: E151, something of it cannot be stored.
    """
    if not isinstance(input, (str, list)):
        raise InputTypeError(got=type(input).__name__)
    for option, value in (("queue", queue), ("dedup_key", dedup_key), ("tenant", tenant)):
        if (value is not None or option == "queue") and not _is_name(value):
            reason = f"must be a text of 1 to {_LONGEST} characters, not {value!r}"
            raise InvalidOptionError(option=option, reason=reason)
    if context is not None and not isinstance(context, dict):
        raise InvalidOptionError(option="context", reason=f"must be a dict, not {type(context).__name__}")
    session = run_options.pop("session", None)
    masks = [one for one in map(owner_of, agent.layers.stages) if isinstance(one, Redact)]

    def redact(data: Any) -> Any:
        for one in masks:
            data = one.masked(data)
        return data

    kept = kept_keys(agent)
    if kept:
        reason = "would be lost in the queue; enqueue to an agent whose Redact does not restore"
        raise NotStorableError(
            agent=agent.name, what="the values that Redact(restore=True) puts back", reason=reason
        )
    stored = stored_context(agent.name, context or {}, redact, may_leave_out=may_leave_out)
    run = StoredRun(
        agent=agent.name,
        input=redact(input),
        **stored,
        options=checked_options(agent.name, run_options),
        session=None if session is None else getattr(session, "session_id", str(session)),
        queue=queue,
        tenant=tenant,
    )
    return Job(
        new_run_id(),
        run.to_json(),
        queue,
        None if priority is None else checked_int("priority", priority, 1),
        dedup_key,
        tenant,
        None if delay is None else checked_number("delay", delay),
    )


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST and value.isprintable()
