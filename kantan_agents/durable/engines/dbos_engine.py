"""Durable runs as workflows of DBOS, in SQLite or Postgres.

Calls are not steps of DBOS, which identifies steps by position, while calls may start in another order.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from threading import Lock
from typing import Any, Final
from weakref import WeakKeyDictionary

from kantan_agents.durable.engines.dbos_log import EndedError, one_line_each
from kantan_agents.durable.engines.dbos_runs import (
    DBOS_QUEUE,
    SCHEDULED,
    VERSION,
    WORKFLOW,
    DBOSRuns,
)
from kantan_agents.durable.engines.engine import RESUMED, Body, Job, Limits, note_failure
from kantan_agents.durable.engines.no_pickles import refuse_pickles
from kantan_agents.durable.engines.old_sqlite import give_clock
from kantan_agents.durable.storage.database import RunDatabase, close_engine, failures, leave_to_parent
from kantan_agents.errors import DurableDatabaseError, DurableNotStartedError, DurableRunNotFoundError

_POLLING_SECONDS: Final = 0.5
_TAKING_SECONDS: Final = 5.0
_POOL: Final = 20


class DBOSEngine(DBOSRuns):
    """Executes DBOS workflows in this process, once started; ``polling`` is in seconds."""

    def __init__(
        self, database: RunDatabase, application: str, max_recoveries: int, polling: float = _POLLING_SECONDS
    ) -> None:
        super().__init__(database, application)
        self._max_recoveries = max_recoveries
        self._polling = min(polling, _POLLING_SECONDS)
        self._workflow: Any = None
        self._log_as_before: Callable[[], None] = lambda: None
        self._pool: Any = None
        self._unmade: set[str] = set()
        self._errors: dict[str, Exception | None] = {}
        self._executors = _DefaultExecutors()
        self._taking: set[str] = set()  # names of the threads that take runs from queues

    def start(self, body: Body, queues: Mapping[str, Limits]) -> None:
        """See ``Engine``."""
        from dbos import DBOS, DBOSPortableJSONSerializer, _dbos

        if _dbos._dbos_global_instance is not None:
            reason = "this process has a DBOS of its own; start DurableRuns in another process"
            raise DurableNotStartedError(agent="DurableRuns", reason=reason)
        try:
            _forget_closed_streams()
            give_clock()
            refuse_pickles()
            self._log_as_before = one_line_each(self._database.masked)
            DBOS(
                config={
                    "name": self._application,
                    "system_database_url": self._database.url,
                    "system_database_engine": self._opened_pool(),
                    "executor_id": self.executor,
                    "application_version": VERSION,
                    "log_level": "ERROR",
                    "serializer": DBOSPortableJSONSerializer(),  # by default it would pickle errors
                    "notification_listener_polling_interval_sec": self._polling,
                    "scheduler_polling_interval_sec": 10 * self._polling,
                }
            )
            self._workflow = _register(self._keeping_error(body), self._max_recoveries, self.enqueue_now)
            self._own_queue = next((name for name in queues if name.startswith(RESUMED)), RESUMED)
            DBOS.listen_queues(list(queues))
            # DBOS starts the runs of schedules through its internal queue.
            self._taking = {f"queue-worker-{name}" for name in (*queues, DBOS_QUEUE)}
            self._change_tables(self._pool)
            # Before the launch: DBOS looks for new queues only once a second.
            client = self._client()
            for name, limits in queues.items():
                client.register_queue(name, **_queue_options(limits), polling_interval_sec=self._polling)
            with _without_retries():
                DBOS.launch()
        except Exception as error:
            self._destroy()
            raise self._database.unusable(error) from error

    def take_no_more(self) -> None:
        """See ``Engine``. No thread takes a run from a queue any more after this."""
        from dbos import _dbos

        instance = _dbos._dbos_global_instance
        # `DBOS.destroy` starts with this, before this library has waited for its runs.
        for event in instance.background_thread_stop_events if instance is not None else ():
            event.set()
        # A run taken later finds DBOS's loop closed. A starting thread cannot be joined, but sees the event
        # first.
        deadline = time.monotonic() + _TAKING_SECONDS
        for thread in threading.enumerate():
            if thread.name in self._taking and thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))

    def stop(self) -> None:
        """See ``Engine``."""
        if self._workflow is not None:
            self._workflow = None
            self.take_no_more()
            self._executors.give_back()
            self._destroy()
        self._close_client()

    def after_fork(self) -> None:
        """See ``Engine``."""
        super().after_fork()
        self._unmade, self._errors, self._executors = set(), {}, _DefaultExecutors()
        if self._workflow is not None:
            from dbos import _dbos

            leave_to_parent((_dbos._dbos_global_instance, self._pool), None)
            _dbos._dbos_global_instance = _dbos._dbos_global_registry = None
            self._workflow = self._pool = None
            self._log_as_before()

    def _opened_pool(self) -> Any:
        if not self._database.is_sqlite:
            self._pool = self._database.server_engine(_POOL)
        return self._pool

    def _destroy(self) -> None:
        from dbos import DBOS

        DBOS.destroy(destroy_registry=True)
        self._log_as_before()
        pool, self._pool = self._pool, None
        if pool is not None:
            close_engine(pool)

    async def run(self, run_id: str, stored: str) -> str:
        """See ``Engine``."""
        from dbos import DBOSContextEnsure, SetWorkflowID

        self._executors.remember()
        self._errors[run_id] = None
        error: Exception | None = None
        try:
            # Outside any user workflow, whose steps are identified by position.
            with DBOSContextEnsure(), SetWorkflowID(run_id):
                return str(await self._workflow(stored))
        except EndedError as ended:
            error = self._errors[run_id] or ended
        except failures() as failure:  # of the engine itself; errors of the run are others
            error = self._database.unusable(failure)
        finally:
            del self._errors[run_id]
        raise error  # in the `except` block, the one for DBOS would become its context

    def recover_unmade(self) -> bool:
        """See ``Engine``."""
        from dbos import _dbos

        rows = self._client().list_workflows(status="PENDING", executor_id=[self.executor], load_output=False)
        # Runs of queues, for which DBOS has no public question, and runs that are awaited here.
        made = {*_dbos._get_dbos_instance()._active_workflows_set.activeList(), *self._errors}
        unmade = {row.workflow_id: row for row in rows if row.workflow_id not in made}
        for run_id in self._unmade & unmade.keys():
            self._recover(unmade.pop(run_id))
        self._unmade = {*unmade}
        return bool(unmade)

    def _keeping_error(self, body: Body) -> Body:
        async def keeping(run_id: str, stored: str) -> str:
            try:
                return await body(run_id, stored)
            except DurableDatabaseError as error:
                if run_id in self._errors:
                    self._errors[run_id] = error
                if error.is_away:  # the run has not ended: DBOS leaves a cancelled one unchanged
                    raise asyncio.CancelledError from error
                text = note_failure(run_id, error)
            except Exception as error:  # noqa: BLE001 - raised again for the caller of the run
                if run_id in self._errors:
                    self._errors[run_id] = error
                text = note_failure(run_id, error)
            raise EndedError(text)

        return keeping


def _forget_closed_streams() -> None:
    """Remove handlers with closed streams, which DBOS would fail to flush."""
    logger = logging.getLogger("dbos")
    for handler in [*logger.handlers]:
        if getattr(getattr(handler, "stream", None), "closed", False):
            logger.removeHandler(handler)


@contextmanager
def _without_retries() -> Iterator[None]:
    """Inside the block, DBOS starts without retries while the server is away.

    By default it retries for ever, in threads that nothing can end.
    """
    from dbos._sys_db import SystemDatabase

    owner: Any = SystemDatabase
    create = owner.create
    owner.create = staticmethod(partial(create, retry_connection_errors=False))
    try:
        yield
    finally:
        owner.create = staticmethod(create)


def _register(body: Body, max_recoveries: int, enqueue: Any) -> Any:
    from dbos import DBOS, WorkflowSerializationFormat

    options: Any = {"serialization_type": WorkflowSerializationFormat.PORTABLE}

    async def durable_run(stored: str) -> str:
        run_id = DBOS.workflow_id
        if run_id is None:
            raise DurableRunNotFoundError(run_id="", database="this process")
        return await body(run_id, stored)

    def scheduled_run(at: datetime, context: Any) -> str:
        run_id = DBOS.workflow_id or ""
        job = uuid.uuid5(uuid.NAMESPACE_URL, f"{run_id}/{at.isoformat()}").hex
        return str(enqueue(Job(job, context["stored"], context["queue"])))

    # It only queues, under a constant id, so any number of takeovers is safe.
    DBOS.workflow(name=SCHEDULED, max_recovery_attempts=None, **options)(scheduled_run)
    return DBOS.workflow(name=WORKFLOW, max_recovery_attempts=max_recoveries, **options)(durable_run)


def _queue_options(limits: Limits) -> dict[str, Any]:
    # DBOS rejects a partial limit above the total.
    most = limits.total or max(limits.concurrency, limits.per_tenant or 0)
    options: dict[str, Any] = {
        "worker_concurrency": min(limits.concurrency, most),
        "global_concurrency": limits.total,
        "partition_concurrency": None if limits.per_tenant is None else min(limits.per_tenant, most),
    }
    if limits.rate is not None:
        options["limiter"] = {"limit": limits.rate, "period": limits.period}
    if limits.tenant_rate is not None:
        options["partition_limiter"] = {"limit": limits.tenant_rate, "period": limits.period}
    return options


class _DefaultExecutors:
    """The original executors of event loops, which DBOS replaces with its own until its end."""

    def __init__(self) -> None:
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = WeakKeyDictionary()
        self._lock = Lock()

    def remember(self) -> None:
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop not in self._loops:
                # There is no public way. None means that the loop creates one on demand.
                known = getattr(loop, "_default_executor", None)
                self._loops[loop] = None if type(known).__module__.startswith("dbos.") else known

    def give_back(self) -> None:
        with self._lock:
            loops = list(self._loops.items())
        for loop, executor in loops:
            with suppress(RuntimeError):  # it is closed
                loop.call_soon_threadsafe(loop.set_default_executor, executor or ThreadPoolExecutor())
