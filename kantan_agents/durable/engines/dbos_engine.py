"""``DBOSEngine``: durable runs as workflows of DBOS, in a SQLite file or in Postgres.

A run is one workflow. Its calls are not steps of DBOS: DBOS finds a step again by its place, and the calls of
a run may begin in another order. They are in ``durable.storage.steps``.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import uuid
import weakref
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final

from kantan_agents.durable.engines.default_executor import DefaultExecutors
from kantan_agents.durable.engines.engine import (
    RESUMED,
    Body,
    EngineRun,
    Job,
    Limits,
    agent_in,
    plain,
    resumed_queue,
)
from kantan_agents.durable.engines.old_sqlite import give_clock
from kantan_agents.durable.formats import message_of
from kantan_agents.durable.storage.database import Database, close_with
from kantan_agents.errors import (
    DurableDatabaseError,
    DurableNotStartedError,
    DurableRunNotFoundError,
    InvalidOptionError,
)

if TYPE_CHECKING:
    from dbos import DBOSClient

WORKFLOW: Final = "kantan_agents.durable_run"
SCHEDULED: Final = "kantan_agents.scheduled_run"
# The workflows of the library, not those of the application: what has changed in an agent must not keep a
# worker from the runs that another version has begun.
_VERSION: Final = "kantan-agents-1"
_INTERNAL: Final = "_dbos_internal_queue"
_POLLING_SECONDS: Final = 0.5
_TAKING_SECONDS: Final = 5.0
_STATUS: Final = {
    "PENDING": "running",
    "ENQUEUED": "queued",
    "DELAYED": "queued",
    "SUCCESS": "finished",
    "ERROR": "failed",
    "CANCELLED": "cancelled",
    "MAX_RECOVERY_ATTEMPTS_EXCEEDED": "parked",
}


class _EndedError(Exception):
    """A run has failed, as DBOS may see it.

    DBOS pickles the error of a run and stores its attributes. Errors of runs have connections among theirs,
    which cannot be pickled, and what users have written, which must not be stored.
    """


class DBOSEngine:
    """Runs workflows of DBOS.

    Args:
        database: The database.
        application: Name of the application. Processes of the same name make each other's runs.
        max_recoveries: How often a run is taken over before it is parked.
        polling: Seconds between two looks into a queue.
    """

    def __init__(
        self, database: Database, application: str, max_recoveries: int, polling: float = _POLLING_SECONDS
    ) -> None:
        self._database = database
        self._application = application
        self._max_recoveries = max_recoveries
        self._polling = min(polling, _POLLING_SECONDS)
        self.executor = f"{application}-{uuid.uuid4().hex}"
        self._workflow: Any = None
        self._made: DBOSClient | None = None
        self._closing: weakref.finalize[..., DBOSEngine] | None = None
        self._errors: dict[str, Exception | None] = {}
        self._lock = threading.Lock()
        self._executors = DefaultExecutors()
        self._own_queue = RESUMED
        self._taking: set[str] = set()  # names of the threads that take runs from queues

    def start(self, body: Body, queues: Mapping[str, Limits]) -> None:
        """Begin to make runs of these queues, and those that are recovered."""
        from dbos import DBOS, DBOSPortableJSONSerializer, _dbos

        if _dbos._dbos_global_instance is not None:
            reason = "this process has a DBOS of its own; start DurableRuns in another process"
            raise DurableNotStartedError(agent="DurableRuns", reason=reason)
        try:
            _forget_closed_streams()
            give_clock()
            DBOS(
                config={
                    "name": self._application,
                    "system_database_url": self._database.url,
                    "executor_id": self.executor,
                    "application_version": _VERSION,
                    "log_level": "ERROR",
                    "serializer": DBOSPortableJSONSerializer(),  # by default it would pickle errors
                    "notification_listener_polling_interval_sec": self._polling,
                    "scheduler_polling_interval_sec": 10 * self._polling,
                }
            )
            self._workflow = _register(self._keeping_error(body), self._max_recoveries, self.enqueue_now)
            self._own_queue = next((name for name in queues if name.startswith(RESUMED)), RESUMED)
            DBOS.listen_queues(list(queues))
            # DBOS begins the runs of schedules by a queue of its own.
            self._taking = {f"queue-worker-{name}" for name in (*queues, _INTERNAL)}
            DBOS.migrate(self._database.url)
            # Before the launch: DBOS looks for new queues only once a second.
            client = self._client()
            for name, limits in queues.items():
                client.register_queue(name, **_queue_options(limits), polling_interval_sec=self._polling)
            DBOS.launch()
        except Exception as error:
            DBOS.destroy(destroy_registry=True)
            raise DurableDatabaseError(database=self._database.shown, reason=_first_line(error)) from error

    def take_no_more(self) -> None:
        """Begin no more queued runs; those that are being made go on.

        When this returns, no thread is taking a run from a queue any more.
        """
        from dbos import _dbos

        instance = _dbos._dbos_global_instance
        # What `DBOS.destroy` does first, long before this library has waited for its runs.
        for event in instance.background_thread_stop_events if instance is not None else ():
            event.set()
        # A run that is taken later finds the event loop of DBOS closed. A thread that is about to start takes
        # none, as it looks at the event first; it cannot be joined yet.
        deadline = time.monotonic() + _TAKING_SECONDS
        for thread in threading.enumerate():
            if thread.name in self._taking and thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))

    def stop(self) -> None:
        """Make no more runs, and leave those that are being made to other processes."""
        from dbos import DBOS

        if self._workflow is not None:
            self._workflow = None
            self.take_no_more()
            self._executors.give_back()
            DBOS.destroy(destroy_registry=True)
        with self._lock:
            self._made = None
            closing, self._closing = self._closing, None
        if closing is not None:
            closing()

    async def run(self, run_id: str, stored: str) -> str:
        """Make a run here, in this task, and return its outcome."""
        from dbos import DBOSContextEnsure, SetWorkflowID
        from sqlalchemy.exc import DBAPIError

        self._executors.remember()
        self._errors[run_id] = None
        error: Exception | None = None
        try:
            # Outside of any workflow of the user: its steps are found by their place, and this has none.
            with DBOSContextEnsure(), SetWorkflowID(run_id):
                return str(await self._workflow(stored))
        except _EndedError as ended:
            error = self._errors[run_id] or ended
        except DBAPIError as failure:  # of the engine itself, as errors of the run are others
            error = self._database.unusable(failure)
        finally:
            del self._errors[run_id]
        raise error  # here, as in the `except` block the one for DBOS would become its context

    def _keeping_error(self, body: Body) -> Body:
        async def keeping(run_id: str, stored: str) -> str:
            try:
                return await body(run_id, stored)
            except DurableDatabaseError as error:
                if run_id in self._errors:
                    self._errors[run_id] = error
                if error.is_away:  # the run has not ended: DBOS leaves a cancelled one as it is
                    raise asyncio.CancelledError from error
                text = message_of(error)
            except Exception as error:  # noqa: BLE001 - raised again for the caller of the run
                if run_id in self._errors:
                    self._errors[run_id] = error
                text = message_of(error)
            raise _EndedError(text)

        return keeping

    def enqueue_now(self, job: Job) -> str:
        """Put a run into a queue; return its id, or that of the one which has the same ``dedup_key``."""
        from dbos import WorkflowSerializationFormat

        client = self._client()
        queue = client.retrieve_queue(job.queue)
        by_tenant = queue is not None and queue._has_partition_limits()  # DBOS has no public question
        if by_tenant and job.dedup_key is not None:
            reason = f"cannot be used in the queue {job.queue!r}, which has limits for each tenant"
            raise InvalidOptionError(option="dedup_key", reason=reason)
        options: dict[str, Any] = {
            "workflow_name": WORKFLOW,
            "queue_name": job.queue,
            "workflow_id": job.run_id,
            "app_version": _VERSION,
            "serialization_type": WorkflowSerializationFormat.PORTABLE,
            "priority": job.priority,
            "delay_seconds": job.delay,
            "deduplication_id": job.dedup_key,
            "queue_partition_key": (job.tenant or "default") if by_tenant else None,
        }
        given: Any = {name: value for name, value in options.items() if value is not None}
        if "deduplication_id" in given:
            given["duplication_policy"] = "return-existing"
        return str(client.enqueue(given, job.stored).get_workflow_id())

    def schedule(self, name: str, cron: str, queue: str, stored: str, timezone: str | None) -> None:
        """Put a run into a queue whenever a cron expression says so. Replaces a schedule of the same name."""
        from dbos import error as errors

        entry: Any = {
            "schedule_name": name,
            "workflow_name": SCHEDULED,
            "schedule": cron,
            "context": {"queue": queue, "stored": stored},
            "cron_timezone": timezone,
        }
        try:
            self._client().apply_schedules([entry])
        except errors.DBOSException as error:
            raise ValueError(str(error).removeprefix("DBOS Error: ")) from error

    def unschedule(self, name: str) -> None:
        """Remove a schedule."""
        self._client().delete_schedule(name)

    def executors(self) -> Sequence[str]:
        """Return the processes that make runs, as far as the engine knows."""
        rows = self._client().list_workflows(
            status="PENDING", name=[WORKFLOW, SCHEDULED], load_input=False, load_output=False
        )
        return sorted({row.executor_id for row in rows if row.executor_id})

    def recover(self, executors: Sequence[str]) -> int:
        """Give the runs of processes that have ended to others; return how many these are."""
        ended = list(executors)
        rows = self._client().list_workflows(
            status="PENDING", name=WORKFLOW, executor_id=ended, load_output=False
        )
        # Their queue is that of DBOS: a run of a schedule that was being queued, by its id at most once.
        firings = self._client().list_workflows(
            status="PENDING", name=SCHEDULED, executor_id=ended, load_input=False, load_output=False
        )
        for row in firings:
            _give_to_others(row, _INTERNAL)
        return sum(self._recover(row) for row in rows)

    def recover_one(self, run_id: str) -> None:
        """Give a run of this process to any process, if it has not ended."""
        for row in self._client().list_workflows(workflow_ids=[run_id], name=WORKFLOW, load_output=False):
            if row.executor_id == self.executor:
                self._recover(row)

    def _recover(self, row: Any) -> bool:
        # In a queue of this library: any process takes from that of DBOS, also without the agent.
        agent = agent_in(_engine_run(row).stored)
        # What cannot be read belongs to nobody: this process takes it, and sets it aside with the reason.
        return _give_to_others(row, resumed_queue(agent) if agent else self._own_queue)

    def cancel(self, run_id: str) -> None:
        """Let nobody begin or go on with a run."""
        self._client().cancel_workflow(run_id)

    def resume(self, run_id: str, queue: str | None) -> None:
        """Queue a run again that was cancelled or parked."""
        self._client().resume_workflow(run_id, queue_name=queue)

    def forget(self, run_ids: Sequence[str]) -> None:
        """Delete runs that have ended."""
        self._client().delete_workflows(list(run_ids))

    def find(self, run_id: str) -> EngineRun | None:
        """Return a run; None if there is none of this id."""
        found = self.these([run_id])
        return found[0] if found else None

    def these(self, run_ids: Sequence[str]) -> Sequence[EngineRun]:
        """Return the runs of these ids, newest first."""
        if not run_ids:
            return []
        rows = self._client().list_workflows(workflow_ids=list(run_ids), name=WORKFLOW, sort_desc=True)
        return [_engine_run(row) for row in rows]

    def runs(self, status: str | None, queue: str | None, limit: int) -> Sequence[EngineRun]:
        """Return the newest runs, newest first."""
        statuses = [own for own, known in _STATUS.items() if known == status] if status else None
        rows = self._client().list_workflows(
            status=statuses, queue_name=queue, limit=limit, sort_desc=True, name=WORKFLOW
        )
        return [_engine_run(row) for row in rows]

    def ended_before(self, moment: datetime, limit: int) -> Sequence[str]:
        """Return the oldest runs that have finished, failed or were cancelled before a moment."""
        rows = self._client().list_workflows(
            status=["SUCCESS", "ERROR", "CANCELLED"],
            completed_before=moment.isoformat(),
            name=WORKFLOW,
            limit=limit,
            load_input=False,
            load_output=False,
        )
        return [row.workflow_id for row in rows]

    def _client(self) -> DBOSClient:
        from dbos import DBOSClient, DBOSPortableJSONSerializer

        with self._lock:
            if self._made is None:
                try:
                    give_clock()
                    self._create_tables()
                    self._made = DBOSClient(
                        system_database_url=self._database.url,
                        application_name=self._application,
                        serializer=DBOSPortableJSONSerializer(),
                        retry_connection_errors=False,
                    )
                    self._closing = close_with(self, self._made.destroy)
                except Exception as error:
                    reason = _first_line(error)
                    raise DurableDatabaseError(database=self._database.shown, reason=reason) from error
            return self._made

    def _create_tables(self) -> None:
        """Create the tables of DBOS, which a client does not do, if no process has been started yet."""
        from dbos import DBOS
        from sqlalchemy import inspect

        with self._database.read() as connection:
            schema = None if self._database.is_sqlite else "dbos"
            has_tables = inspect(connection).has_table("workflow_status", schema=schema)
        if not has_tables:
            DBOS.migrate(self._database.url)


def _forget_closed_streams() -> None:
    """Remove handlers of DBOS whose stream is closed: DBOS would fail when it flushes them."""
    logger = logging.getLogger("dbos")
    for handler in [*logger.handlers]:
        if getattr(getattr(handler, "stream", None), "closed", False):
            logger.removeHandler(handler)


def _give_to_others(row: Any, queue: str) -> bool:
    # DBOS recovers the runs of other processes only for its Conductor, so this name is private.
    from dbos._dbos import _get_dbos_instance

    system = _get_dbos_instance()._sys_db
    return bool(system.reenqueue_for_recovery(row.workflow_id, [row.executor_id], queue))


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

    # It does nothing but queue, by an id that stays the same, so it may be taken over as often as needed.
    DBOS.workflow(name=SCHEDULED, max_recovery_attempts=None, **options)(scheduled_run)
    return DBOS.workflow(name=WORKFLOW, max_recovery_attempts=max_recoveries, **options)(durable_run)


def _queue_options(limits: Limits) -> dict[str, Any]:
    # DBOS refuses a limit of a part that is above that of the whole.
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


def _engine_run(row: Any) -> EngineRun:
    arguments = (row.input or {}).get("args") or ()
    return EngineRun(
        run_id=row.workflow_id,
        status=_STATUS.get(row.status, row.status.lower()),
        queue=None if (row.queue_name or RESUMED).startswith((RESUMED, _INTERNAL)) else row.queue_name,
        executor=row.executor_id,
        created_at=_moment(row.created_at),
        updated_at=_moment(row.updated_at),
        stored=plain(arguments[0]) if arguments else None,
        outcome=plain(row.output),
        error=None if row.error is None else str(row.error),
    )


def _moment(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, timezone.utc)


def _first_line(error: BaseException) -> str:
    text = str(getattr(error, "orig", None) or error).strip()
    return text.splitlines()[0] if text else type(error).__name__
