"""Durable runs that Temporal gives to workers.

The database has the runs and their owners; Temporal gets ids and queues. Decision 52 has the reasons.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from datetime import datetime, timezone
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import anyio

from kantan_agents.durable.engines.engine import (
    RESUMED,
    Body,
    Job,
    Limits,
    agent_in,
    new_executor,
    note_failure,
    resumed_queue,
)
from kantan_agents.durable.engines.job_runs import JobRuns
from kantan_agents.durable.engines.jobs import Schedule
from kantan_agents.durable.storage.database import RunDatabase, leave_to_parent
from kantan_agents.errors import DurableDatabaseError, InvalidOptionError
from kantan_agents.support.log import get_logger
from kantan_agents.support.secrets import mask
from kantan_agents.support.waiting import run_to_end

if TYPE_CHECKING:
    from kantan_agents.durable.engines.temporal_work import Connection

SCHEME: Final = "temporal://"
_BATCH: Final = 100
_CHECKED: Final = 20
_CHECK_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 1.0
_LATE_SECONDS: Final = 60.0
_START_SECONDS: Final = 30.0
_STOP_SECONDS: Final = 10.0
_PAUSE_SECONDS: Final = 0.1
_THREADS: Final = 10_000
_PORT: Final = 7233

_log = get_logger("kantan_agents.durable")


class TemporalEngine(JobRuns):
    """Executes the runs that Temporal gives to this process, once started.

    ``interval`` is in seconds, at most one; ``url`` is ``temporal://HOST:PORT/NAMESPACE``.
    """

    def __init__(
        self, database: RunDatabase, application: str, max_recoveries: int, interval: float, url: str
    ) -> None:
        super().__init__(database, application)
        self.executor = new_executor(application)
        self._max_recoveries = max_recoveries
        self._interval = min(interval, _LOOK_SECONDS)
        self._url = url
        self._own_queue = RESUMED
        self._active: set[str] = set()
        self._takes = False
        self._has_left = False
        self._prefix = ""
        self._body: Any = None
        self._thread: Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._fresh: Any = None
        self._serving: Any = None
        self._connection: Connection | None = None

    def after_fork(self) -> None:
        """See ``Engine``."""
        self.executor, self._active, self._takes = new_executor(self._application), set(), False
        leave_to_parent((self._connection, self._loop, self._fresh, self._serving), None)
        self._thread = self._connection = self._loop = self._fresh = self._serving = None

    def start(self, body: Body, queues: Mapping[str, Limits]) -> None:
        """See ``Engine``."""
        self._body, self._takes = body, True
        self._own_queue = next((name for name in queues if name.startswith(RESUMED)), RESUMED)
        # Runs that were active when it was stopped last.
        self.give([self.executor], self._queue_of)
        started: Future[None] = Future()
        serve = partial(asyncio.run, self._serve(queues, started))
        self._thread = Thread(target=serve, name="kantan-agents-temporal", daemon=True)
        self._thread.start()
        try:
            end = time.monotonic() + _START_SECONDS
            while not (started.done() or self._database.is_hurried or time.monotonic() > end):
                wait([started], _PAUSE_SECONDS)
            started.result(0.0)
        except DurableDatabaseError:
            self.stop()
            raise
        except Exception as error:
            self.stop()
            said = mask(str(error)) or f"it has not answered in {_START_SECONDS:g} seconds"
            reason = " ".join(f"Temporal cannot be reached: {said}".split())
            raise DurableDatabaseError(database=self._url, reason=reason) from error

    async def _serve(self, queues: Mapping[str, Limits], started: Future[None]) -> None:
        from kantan_agents.durable.engines.temporal_work import Connection

        self._serving, self._fresh = asyncio.current_task(), asyncio.Event()
        self._loop = asyncio.get_running_loop()
        if not self._takes:  # it was stopped before its start
            return
        # Runs call tools in its threads: a queue may need more than the usual number.
        self._loop.set_default_executor(ThreadPoolExecutor(_THREADS, "kantan-agents-temporal"))
        try:
            self._prefix = f"{self._application}/{await asyncio.to_thread(self._database.identity)}"
            at = urlsplit(self._url)
            named = f"{at.netloc.rstrip(':')}:{_PORT}" if at.netloc and at.port is None else at.netloc
            self._connection = await Connection.open(named, at.path.strip("/"), self._prefix, self.executor)
            self._connection.work(self._make, self._cancel, queues)
        except BaseException as error:  # noqa: BLE001 - raised in the waiting thread
            started.set_exception(error)
            return
        started.set_result(None)
        with suppress(asyncio.CancelledError):  # by `stop`
            await self._look_in_intervals(self._connection)
        await self._connection.close(_STOP_SECONDS)

    def take_no_more(self) -> None:
        """See ``Engine``."""
        self._takes = False
        if self._connection is not None:
            self._call_soon(self._connection.take_no_more)

    def stop(self) -> None:
        """See ``Engine``."""
        self._takes = False
        thread, self._thread = self._thread, None
        if thread is not None:
            if self._serving is not None:
                self._call_soon(self._serving.cancel)
            thread.join(_STOP_SECONDS + 5.0)
            self._loop = self._connection = None

    def _call_soon(self, function: Callable[[], object]) -> None:
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # it is closed
                loop.call_soon_threadsafe(function)

    async def run(self, run_id: str, stored: str) -> str:
        """See ``Engine``; without Temporal."""
        claim = uuid.uuid4().hex
        self._active.add(run_id)
        try:
            # To its end: a caller who cancels it meanwhile can then mark it as cancelled.
            await run_to_end(partial(self.begin, run_id, stored, self.executor, claim))
            return await self._ended(run_id, stored, claim)
        finally:
            self._active.discard(run_id)

    async def _make(self, run_id: str, number: int) -> str:
        from kantan_agents.durable.engines.temporal_work import CannotMakeNowError

        claim = uuid.uuid4().hex
        if run_id in self._active:  # Temporal has missed a heartbeat
            raise CannotMakeNowError("this process makes it")
        if not self._takes:
            raise CannotMakeNowError("this process takes no more runs")
        self._active.add(run_id)
        try:
            take = partial(self.claim, run_id, number, self.executor, claim, self._max_recoveries)
            status, stored = await asyncio.to_thread(take)
            if stored is None and status in ("running", "queued"):  # queued: it was just given back
                raise CannotMakeNowError("another process makes it")
            if stored is None:
                return status
            if not self._takes:
                await asyncio.to_thread(self.give_back, run_id, claim)
                raise CannotMakeNowError("this process takes no more runs")
            await self._ended(run_id, stored, claim)
        except DurableDatabaseError as error:  # it may be stored as active here, which is wrong
            self._has_left = True
            raise CannotMakeNowError(error.reason) from error
        finally:
            self._active.discard(run_id)
        return "finished"

    async def _cancel(self, run_id: str, number: int) -> str:
        try:
            await asyncio.to_thread(self.cancel, run_id, number)
        except DurableDatabaseError:
            self._has_left = True
            raise
        return "cancelled"

    async def _ended(self, run_id: str, stored: str, claim: str) -> str:
        end = partial(self.end, run_id, claim)
        try:
            outcome: str = await self._body(run_id, stored)
        except Exception as error:
            if not getattr(error, "is_away", False):  # then it has not ended
                text = note_failure(run_id, error)
                await asyncio.to_thread(partial(end, "failed", error=text))
            raise
        await asyncio.to_thread(partial(end, "finished", outcome=outcome))
        return outcome

    def enqueue_now(self, job: Job) -> str:
        """See ``Engine``."""
        run_id = self.add(job)
        self._hand_over_soon()
        return run_id

    def _hand_over_soon(self) -> None:
        if self._fresh is not None:
            self._call_soon(self._fresh.set)

    async def _look_in_intervals(self, connection: Connection) -> None:
        while True:
            for act in (self._give_left, partial(self._look, connection)):
                await _tried(act)
            with anyio.move_on_after(self._interval):
                await self._fresh.wait()
            self._fresh.clear()

    async def _look(self, connection: Connection) -> None:
        if await asyncio.to_thread(self.has_work, _CHECK_SECONDS):
            hand_over, check = partial(self._hand_over, connection), partial(self._check, connection)
            for act in (self._fire, hand_over, check):
                await _tried(act)

    async def _give_left(self) -> None:
        if self._has_left:
            self._has_left = False  # first: a run may be left meanwhile
            try:
                await asyncio.to_thread(self.recover_unmade)
            except DurableDatabaseError:
                self._has_left = True
                raise

    async def _hand_over(self, connection: Connection) -> None:
        while jobs := await asyncio.to_thread(self.not_handed, _BATCH):
            for job in jobs:
                await connection.hand_over(job)
                await asyncio.to_thread(self.note_handed, job)

    async def _check(self, connection: Connection) -> None:
        """Check that Temporal still has long-waiting runs: they may have been ended there."""
        for job in await asyncio.to_thread(self.not_checked, _CHECK_SECONDS, _CHECKED):
            is_handed = await connection.is_handed(job)
            if is_handed is None:
                await asyncio.to_thread(self.cancel, job.run_id, job.number)
            else:
                await asyncio.to_thread(partial(self.note_handed, job, is_handed=is_handed))

    async def _fire(self) -> None:
        """Queue the runs of due schedules. Each time has an id, so it counts once."""
        now, due = await asyncio.to_thread(self.due)
        for schedule in due:
            await _tried(partial(self._fire_one, schedule, now))  # it must not block the others

    async def _fire_one(self, schedule: Schedule, now: float) -> None:
        if now - schedule.next_at < _LATE_SECONDS:  # otherwise no process was running
            # With the database's number, so that another database's run has another id at Temporal.
            name = f"{self._prefix}/{schedule.name}/{schedule.next_at}"
            job = Job(uuid.uuid5(uuid.NAMESPACE_URL, name).hex, schedule.stored, schedule.queue)
            await asyncio.to_thread(self.add, job)
        following = _next_time(schedule.cron, schedule.timezone, now)
        await asyncio.to_thread(self.fired, schedule, following)

    def schedule(self, name: str, cron: str, queue: str, stored: str, timezone: str | None) -> None:
        """See ``Engine``."""
        now, _ = self.due()
        self.keep_schedule(Schedule(name, cron, timezone, queue, stored, _next_time(cron, timezone, now)))

    def recover(self, executors: Sequence[str]) -> int:
        """See ``Engine``."""
        count = self.give(executors, self._queue_of)
        self._hand_over_soon()
        return count

    def _queue_of(self, stored: str) -> str:
        # This process takes unreadable data, and parks it with the reason.
        agent = agent_in(stored)
        return resumed_queue(agent) if agent else self._own_queue

    def recover_unmade(self) -> bool:
        """See ``Engine``."""
        self.give([self.executor], self._queue_of, self._active)
        self._hand_over_soon()
        return False

    def resume(self, run_id: str, queue: str | None) -> None:
        """See ``Engine``."""
        super().resume(run_id, queue)
        self._hand_over_soon()


async def _tried(act: Callable[[], Awaitable[None]]) -> None:
    try:
        await act()
    except Exception as error:  # noqa: BLE001 - Temporal or the database may be away for a while
        text = str(error).split("\n", 1)[0]
        _log.warning("durable runs not handed over, trying again", error=text)


def check_limits(queues: Mapping[str, Limits]) -> None:
    """Raise E75 for limits that Temporal does not have."""
    for name, limits in queues.items():
        if limits.total is not None or limits.by_tenant:
            reason = (
                f"gives the queue {name!r} a limit for all workers together or for each tenant, which "
                "Temporal does not have. Use concurrency and rate, or the engine dbos"
            )
            raise InvalidOptionError(option="queues", reason=reason)


def _next_time(cron: str, zone: str | None, after: float) -> float:
    from croniter import croniter as untyped

    croniter: Any = untyped
    if not croniter.is_valid(cron, second_at_beginning=True):
        raise ValueError(f"Invalid cron schedule: '{cron}'")
    try:
        begin = datetime.fromtimestamp(after, timezone.utc if zone is None else ZoneInfo(zone))
    except Exception as error:
        raise ValueError(f"Invalid timezone: '{zone}'") from error
    return float(croniter(cron, begin, second_at_beginning=True).get_next(datetime).timestamp())
