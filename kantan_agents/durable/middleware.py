"""``Durable``, and the jobs that it queues."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, ClassVar

from kantan_agents.agent.running.new import is_inside
from kantan_agents.core.interception import Middleware
from kantan_agents.core.pipeline import Next, Run
from kantan_agents.durable.engines.engine import Job
from kantan_agents.durable.execution import current_execution
from kantan_agents.durable.session import check_session
from kantan_agents.durable.started_runs import started_runs
from kantan_agents.durable.stored_run import StoredRun, checked_options, kept_keys, stored_context
from kantan_agents.errors import InputTypeError, InvalidOptionError, NotStorableError
from kantan_agents.middleware.redact.redact import Redact
from kantan_agents.support.arguments import checked_int, checked_number
from kantan_agents.traces.ids import new_run_id

Reload = Callable[[dict[str, Any]], "Awaitable[None] | None"]
"""Puts the values that are not stored, such as a connection, into a context."""

OpenSession = Callable[[str], Any]
"""Returns the SDK's session of an id."""

_LONGEST = 200


class Durable(Middleware):
    """Lets the runs of an agent survive the end of their process.

    The run is stored at its start, and so is the result of each model call and each tool call. If the process
    ends, another one resumes the run. This needs a started ``DurableRuns`` with the agent.

    It is the outermost middleware of an agent, whatever its position in the list: input and context are
    stored as given, and a resumed run passes through the other middleware again.

    A call that had not ended is repeated, with the same ``ToolCall.idempotency_key``. The tool rules are
    checked again for every call, even for finished ones.

    Args:
        once: Names of the tools whose calls may happen only once. If the process ends during such a call, the
            run fails with E153.
        reload: ``def reload(context)``, sync or async: for a run that resumes in another process, adds the
            context values that are not stored, because they are not JSON or would be redacted.
        session: Returns the session of an id, if runs have the option ``session``.

    Raises:
        InvalidOptionError: E75, an option has an invalid value.
    """

    is_outermost: ClassVar[bool] = True

    def __init__(
        self,
        *,
        once: Iterable[str] = (),
        reload: Reload | None = None,
        session: OpenSession | None = None,
    ) -> None:
        names = (once,) if isinstance(once, str) else tuple(once)
        if not all(isinstance(name, str) and name for name in names):
            raise InvalidOptionError(option="once", reason=f"must be names of tools, not {once!r}")
        for option, value in (("reload", reload), ("session", session)):
            if value is not None and not callable(value):
                raise InvalidOptionError(option=option, reason=f"must be a function, not {value!r}")
        self.once = frozenset(names)
        self.reload = reload
        self.session = session

    async def run(self, run: Run, call_next: Next) -> None:
        """Start or resume a durable run; inside a durable run, be a part of it.

        Raises:
            DurableNotStartedError: E150, no ``DurableRuns`` is started, or it does not have the agent.
            NotStorableError: E151, the run has something that cannot be stored.
            RunMovedError: E157, another process has taken the run over, or it was canceled.
        """
        execution = current_execution.get()
        if run._tape is not None or (execution is None and run.is_nested):
            # A replay makes no calls, and no process could resume a run inside one that is not durable.
            await call_next(run)
        elif execution is None:
            await started_runs(run.agent.name).begin(self, run, call_next)
        elif run.id == execution.root_id or run.parent_call is not None:
            await started_runs(run.agent.name).inside(execution, self, run, call_next)
        else:  # a guardrail's or hook's, whose runs have different names in each process
            await call_next(run)

    async def enqueue(self, agent: Any, input: Any, context: Any, **options: Any) -> str:
        """Add a run of an agent to a queue; for ``Agent.enqueue``."""
        runs = started_runs(agent.name)
        check_session(agent.name, options["run_options"].get("session"), self.session)
        job = queued_job(agent, input, context, may_leave_out=self.reload is not None, **options)
        return str(await runs.enqueue(job))

    def __repr__(self) -> str:
        return f"Durable(once={sorted(self.once)})" if self.once else "Durable()"


def durable_of(agent: Any) -> Durable | None:
    """Return the ``Durable`` among the middleware of an agent."""
    return next((one for one in agent.layers.middleware if isinstance(one, Durable)), None)


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
    """Return the run in its form for a queue; raises E75, E78 or E151."""
    if not isinstance(input, (str, list)):
        raise InputTypeError(got=type(input).__name__)
    names = {"dedup_key": dedup_key, "tenant": tenant}
    check_names(queue=queue)
    check_names(**{name: value for name, value in names.items() if value is not None})
    if context is not None and not isinstance(context, dict):
        raise InvalidOptionError(option="context", reason=f"must be a dict, not {type(context).__name__}")
    session = run_options.pop("session", None)
    masks = [one for one in agent.layers.middleware if isinstance(one, Redact)]

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
        is_nested=is_inside(),
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


def check_names(**names: Any) -> None:
    """Raise E75 unless all names are short printable strings."""
    for option, value in names.items():
        if not (isinstance(value, str) and 0 < len(value) <= _LONGEST and value.isprintable()):
            reason = f"must be a text of 1 to {_LONGEST} characters, not {value!r}"
            raise InvalidOptionError(option=option, reason=reason)
