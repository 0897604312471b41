"""The interface of workflow engines for durable runs."""

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
"""Executes a run from its id and stored JSON; returns its outcome as JSON."""


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

    The smallest ``priority`` is first, None before all. While a run with this ``dedup_key`` is waiting or
    active, the queue takes no second one. ``delay`` is in seconds.
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
    """A run as the engine knows it; ``stored`` and ``outcome`` are JSON."""

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
    """A workflow engine. Sync methods may block, and run in a thread."""

    executor: str

    def start(self, body: Body, queues: Mapping[str, Limits]) -> None:
        """Start executing runs."""
        ...

    def take_no_more(self) -> None:
        """Start no more queued runs; active ones continue."""
        ...

    def stop(self) -> None:
        """Stop, and leave active runs to other processes."""
        ...

    def after_fork(self) -> None:
        """Reset a forked child: new id, and no use of the parent's connections."""
        ...

    async def run(self, run_id: str, stored: str) -> str:
        """Execute a run in this task; return its outcome."""
        ...

    def enqueue_now(self, job: Job) -> str:
        """Queue a run; return its id, or the one with its ``dedup_key``."""
        ...

    def schedule(self, name: str, cron: str, queue: str, stored: str, timezone: str | None) -> None:
        """Queue a run at each cron match; replace a schedule by name."""
        ...

    def unschedule(self, name: str) -> None:
        """Remove a schedule."""
        ...

    def executors(self) -> Sequence[str]:
        """Return the processes that execute runs."""
        ...

    def recover(self, executors: Sequence[str]) -> int:
        """Give ended processes' runs to others; return their number."""
        ...

    def recover_unmade(self) -> bool:
        """Give inactive runs of this process to others; return whether to call again.

        A run must be inactive at two calls, as it may be about to start.
        """
        ...

    def agents_waited_for(self) -> Mapping[str, int]:
        """Return how many runs wait for each agent."""
        ...

    def cancel(self, run_id: str) -> None:
        """Prevent a run from starting or resuming."""
        ...

    def resume(self, run_id: str, queue: str | None) -> None:
        """Queue a canceled or parked run again."""
        ...

    def forget(self, run_ids: Sequence[str]) -> None:
        """Delete runs that have ended."""
        ...

    def ended_before(self, moment: datetime, limit: int) -> Sequence[str]:
        """Return the oldest runs that ended before a moment."""
        ...

    def find(self, run_id: str) -> EngineRun | None:
        """Return a run, if it exists."""
        ...

    def these(self, run_ids: Sequence[str]) -> Sequence[EngineRun]:
        """Return the runs of these ids."""
        ...

    def settled(self, run_ids: Sequence[str]) -> Sequence[str]:
        """Return the ids without a queued or active run."""
        ...

    def forget_firings(self, moment: datetime) -> None:
        """Delete the schedules' firings until a moment."""
        ...

    def runs(
        self, statuses: Sequence[str] | None, queue: str | None, limit: int, offset: int
    ) -> Sequence[EngineRun]:
        """Return the latest runs of these statuses, from ``offset``."""
        ...


RESUMED: Final = "kantan_agents_resumed"


def new_executor(application: str) -> str:
    """Return an id for a process."""
    return f"{application}-{uuid.uuid4().hex}"


def resumed_queue(agent: str) -> str:
    """Return the queue for an agent's recovered and approved runs without one.

    Only processes with the agent take from it.
    """
    return f"{RESUMED}/{agent}"


def agent_in(stored: str | None) -> str:
    """Return the agent of a stored run; empty if unreadable."""
    try:
        return str(json.loads(stored or "")["agent"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""


def note_failure(run_id: str, error: Exception) -> str:
    """Log a failed run; return its storable error message."""
    text = mask(message_of(error))
    _log.error("durable run failed", run_id=run_id, error=" ".join(text[:_LOGGED].split()))
    return text


def plain(value: Any) -> str | None:
    """Return a stored string, else None."""
    return value if isinstance(value, str) else None
