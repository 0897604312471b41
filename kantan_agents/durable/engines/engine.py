"""``Engine``: what a workflow engine does for durable runs: it stores, starts, queues and recovers them."""

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
"""Makes a run: takes its id and what was stored of it, returns its outcome, both as JSON texts."""


def _seconds(value: Any) -> float:
    return checked_number("period", value, above_zero=True)


def _at_least_one(_limits: Any, attribute: Any, value: Any) -> None:
    if value is not None or attribute.name == "concurrency":
        checked_int(attribute.name, value, 1)


@attrs.frozen
class Limits:
    """How many runs of a queue may be made at once, and how many may begin in a time.

    Attributes:
        concurrency: Runs at once in each worker.
        total: Runs at once in all workers; None without a limit.
        rate: Runs that may begin in ``period`` seconds, in all workers; None without a limit.
        period: Seconds.
        per_tenant: Runs at once for each tenant; None without a limit.
        tenant_rate: Runs of each tenant that may begin in ``period`` seconds; None without a limit.

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
        """Whether tenants have limits of their own."""
        return self.per_tenant is not None or self.tenant_rate is not None


@attrs.frozen
class Job:
    """A run to be made by a worker.

    Attributes:
        run_id: Its id. A run of this id is not made twice.
        stored: What is stored of it.
        queue: Name of the queue.
        priority: 1 is the first, larger numbers follow; None is before all of them.
        dedup_key: While a run with this key waits or is made, the queue takes no second one.
        tenant: Whose limits apply.
        delay: Seconds before it may begin.
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
        queue: The queue it came from; None for one that was begun where it was asked for.
        executor: The process that makes or made it.
        created_at: When it was begun or queued.
        updated_at: When its status changed last.
        stored: What is stored of it, as JSON text.
        outcome: How it ended, as JSON text; None if it has not, or not well.
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
    """A workflow engine. Every method may block and is called in a thread, but for those that are async."""

    executor: str
    """Id of this process."""

    def start(self, body: Body, queues: Mapping[str, Limits]) -> None:
        """Begin to make runs of these queues, and those that are recovered."""
        ...

    def take_no_more(self) -> None:
        """Begin no more queued runs; those that are being made go on."""
        ...

    def stop(self) -> None:
        """Make no more runs, and leave those that are being made to other processes."""
        ...

    def after_fork(self) -> None:
        """In a forked child: be another process, with another id, and leave what is open to the parent."""
        ...

    async def run(self, run_id: str, stored: str) -> str:
        """Make a run here, in this task, and return its outcome."""
        ...

    def enqueue_now(self, job: Job) -> str:
        """Put a run into a queue; return its id, or that of the one which has the same ``dedup_key``."""
        ...

    def schedule(self, name: str, cron: str, queue: str, stored: str, timezone: str | None) -> None:
        """Put a run into a queue whenever a cron expression says so. Replaces a schedule of the same name."""
        ...

    def unschedule(self, name: str) -> None:
        """Remove a schedule."""
        ...

    def executors(self) -> Sequence[str]:
        """Return the processes that make runs, as far as the engine knows."""
        ...

    def recover(self, executors: Sequence[str]) -> int:
        """Give the runs of processes that have ended to others; return how many these are."""
        ...

    def recover_unmade(self) -> bool:
        """Give the runs of this process to any process that it does not make; return whether to ask again.

        A run must not be made at two calls, as it may just be about to begin.
        """
        ...

    def agents_waited_for(self) -> Mapping[str, int]:
        """Return how many runs wait until a process with their agent takes them, by agent."""
        ...

    def cancel(self, run_id: str) -> None:
        """Let nobody begin or go on with a run."""
        ...

    def resume(self, run_id: str, queue: str | None) -> None:
        """Queue a run again that was cancelled or parked."""
        ...

    def forget(self, run_ids: Sequence[str]) -> None:
        """Delete runs that have ended."""
        ...

    def ended_before(self, moment: datetime, limit: int) -> Sequence[str]:
        """Return the oldest runs that have finished, failed or were cancelled before a moment."""
        ...

    def find(self, run_id: str) -> EngineRun | None:
        """Return a run; None if there is none of this id."""
        ...

    def these(self, run_ids: Sequence[str]) -> Sequence[EngineRun]:
        """Return the runs of these ids."""
        ...

    def settled(self, run_ids: Sequence[str]) -> Sequence[str]:
        """Return those of these ids whose run is neither queued nor being made, or that have none."""
        ...

    def forget_firings(self, moment: datetime) -> None:
        """Delete what is stored of the times at which schedules have queued a run, until a moment."""
        ...

    def runs(
        self, statuses: Sequence[str] | None, queue: str | None, limit: int, offset: int
    ) -> Sequence[EngineRun]:
        """Return the newest runs of these statuses, newest first, without the first ``offset``."""
        ...


RESUMED: Final = "kantan_agents_resumed"


def new_executor(application: str) -> str:
    """Return an id for a process."""
    return f"{application}-{uuid.uuid4().hex}"


def resumed_queue(agent: str) -> str:
    """Return the queue of runs of an agent that go on and came from none: recovered ones, and approved ones.

    Only processes that have the agent take from it.
    """
    return f"{RESUMED}/{agent}"


def agent_in(stored: str | None) -> str:
    """Return the agent in what is stored of a run; empty if that cannot be read."""
    try:
        return str(json.loads(stored or "")["agent"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""


def note_failure(run_id: str, error: Exception) -> str:
    """Log that a run has failed; return the message of its error as it may be stored."""
    text = mask(message_of(error))
    _log.error("durable run failed", run_id=run_id, error=" ".join(text[:_LOGGED].split()))
    return text


def plain(value: Any) -> str | None:
    """Return a stored value that should be a text; None for anything else."""
    return value if isinstance(value, str) else None
