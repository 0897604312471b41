"""The tasks of a workflow engine for durable runs: it stores, starts, queues and recovers them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Protocol

import attrs

from kantan_agents.durable.step_bodies import message_of
from kantan_agents.support.arguments import checked_int, checked_number
from kantan_agents.support.log import get_logger
from kantan_agents.support.secrets import mask

_LOGGED: Final = 500
_log = get_logger("kantan_agents.durable")

Body = Callable[[str, str], Awaitable[str]]
"""Executes a run: takes its id and its stored form, returns its outcome, both as JSON."""


def _seconds(value: Any) -> float:
    return checked_number("period", value, above_zero=True)


def _at_least_one(_limits: Any, attribute: Any, value: Any) -> None:
    if value is not None or attribute.name == "concurrency":
        checked_int(attribute.name, value, 1)


@attrs.frozen
class Limits:
    """How many runs of a queue may be active at the same time, and how many may start in a period.

    Attributes:
        concurrency: Active runs in each worker.
        total: Active runs in all workers; None without a limit.
        rate: Runs that may start in ``period`` seconds, in all workers; None without a limit.
        period: Seconds.
        per_tenant: Active runs for each tenant; None without a limit.
        tenant_rate: Runs of each tenant that may start in ``period`` seconds; None without a limit.

    Raises:
        InvalidOptionError: E75, a number is less than 1.
    """

    concurrency: int = attrs.field(default=10, validator=_at_least_one)
    total: int | None = attrs.field(default=None, validator=_at_least_one)
    rate: int | None = attrs.field(default=None, validator=_at_least_one)
    period: float = attrs.field(default=60.0, converter=_seconds)
    per_tenant: int | None = attrs.field(default=None, validator=_at_least_one)
    tenant_rate: int | None = attrs.field(default=None, validator=_at_least_one)

    @property
    def by_tenant(self) -> bool:
        """Whether tenants have separate limits."""
        return self.per_tenant is not None or self.tenant_rate is not None


@attrs.frozen
class Job:
    """A run for a worker.

    Attributes:
        run_id: Its id. A run of this id is not executed twice.
        stored: Its stored form.
        queue: Name of the queue.
        priority: 1 is the first, larger numbers follow; None is before all of them.
        dedup_key: While a run with this key is waiting or active, the queue takes no second one.
        tenant: Whose limits apply.
        delay: Seconds before it may start.
    """

    run_id: str
    stored: str
    queue: str
    priority: int | None = None
    dedup_key: str | None = None
    tenant: str | None = None
    delay: float | None = None


@attrs.frozen
class EngineRun:
    """A run as the engine knows it.

    Attributes:
        run_id: Its id.
        status: ``"queued"``, ``"running"``, ``"finished"``, ``"failed"``, ``"cancelled"`` or ``"parked"``.
        queue: The queue it came from; None for one started without a queue.
        executor: The process that executes or executed it.
        created_at: When it was started or queued.
        updated_at: Time of its last change of status.
        stored: Its stored form, as JSON.
        outcome: Its outcome, as JSON; None unless it has finished.
        error: The message of its error.
    """

    run_id: str
    status: str
    queue: str | None
    executor: str | None
    created_at: datetime | None
    updated_at: datetime | None
    stored: str | None
    outcome: str | None
    error: str | None


class Engine(Protocol):
    """A workflow engine. Sync methods may block and are called in a thread."""

    executor: str
    """Id of this process."""

    def start(self, body: Body, queues: Mapping[str, Limits]) -> None:
        """Start executing runs of these queues, and recovered runs."""
        ...

    def take_no_more(self) -> None:
        """Start no more queued runs; active ones continue."""
        ...

    def stop(self) -> None:
        """Stop, and leave active runs to other processes."""
        ...

    def after_fork(self) -> None:
        """In a forked child: become another process with another id, and leave open files to the parent."""
        ...

    async def run(self, run_id: str, stored: str) -> str:
        """Execute a run in this task and return its outcome."""
        ...

    def enqueue_now(self, job: Job) -> str:
        """Queue a run; return its id, or the id of the one with the same ``dedup_key``."""
        ...

    def schedule(self, name: str, cron: str, queue: str, stored: str, timezone: str | None) -> None:
        """Queue a run whenever a cron expression matches; replace a schedule of the same name."""
        ...

    def unschedule(self, name: str) -> None:
        """Remove a schedule."""
        ...

    def executors(self) -> Sequence[str]:
        """Return the processes that execute runs, as far as the engine knows."""
        ...

    def recover(self, executors: Sequence[str]) -> int:
        """Give the runs of ended processes to others; return their number."""
        ...

    def recover_unmade(self) -> bool:
        """Give this process's inactive runs to any process; return whether to call again.

        A run counts only if it was inactive at two calls, as it may be about to start.
        """
        ...

    def agents_waited_for(self) -> Mapping[str, int]:
        """Return how many runs wait for a process with their agent, by agent."""
        ...

    def cancel(self, run_id: str) -> None:
        """Prevent a run from starting or resuming."""
        ...

    def resume(self, run_id: str, queue: str | None) -> None:
        """Queue a cancelled or parked run again."""
        ...

    def forget(self, run_ids: Sequence[str]) -> None:
        """Delete runs that have ended."""
        ...

    def ended_before(self, moment: datetime, limit: int) -> Sequence[str]:
        """Return the oldest runs that have finished, failed or were cancelled before a moment."""
        ...

    def find(self, run_id: str) -> EngineRun | None:
        """Return a run; None if the id is unknown."""
        ...

    def these(self, run_ids: Sequence[str]) -> Sequence[EngineRun]:
        """Return the runs of these ids."""
        ...

    def settled(self, run_ids: Sequence[str]) -> Sequence[str]:
        """Return the ids whose run is neither queued nor active, or does not exist."""
        ...

    def forget_firings(self, moment: datetime) -> None:
        """Delete the stored firings of schedules, until a moment."""
        ...

    def runs(
        self, statuses: Sequence[str] | None, queue: str | None, limit: int, offset: int
    ) -> Sequence[EngineRun]:
        """Return the latest runs of these statuses, without the first ``offset``."""
        ...


RESUMED: Final = "kantan_agents_resumed"


def new_executor(application: str) -> str:
    """Return an id for a process."""
    return f"{application}-{uuid.uuid4().hex}"


def resumed_queue(agent: str) -> str:
    """Return the queue for an agent's recovered and approved runs that came from none.

    Only processes that have the agent take from it.
    """
    return f"{RESUMED}/{agent}"


def agent_in(stored: str | None) -> str:
    """Return the agent in a run's stored form; empty if unreadable."""
    try:
        return str(json.loads(stored or "")["agent"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""


def note_failure(run_id: str, error: Exception) -> str:
    """Log that a run has failed; return its error message in storable form."""
    text = mask(message_of(error))
    _log.error("durable run failed", run_id=run_id, error=" ".join(text[:_LOGGED].split()))
    return text


def plain(value: Any) -> str | None:
    """Return a stored string; None for any other value."""
    return value if isinstance(value, str) else None
