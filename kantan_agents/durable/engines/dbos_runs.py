"""The runs stored by DBOS."""

from __future__ import annotations

import json
import threading
import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kantan_agents.durable.engines.engine import (
    RESUMED,
    EngineRun,
    Job,
    agent_in,
    new_executor,
    plain,
    resumed_queue,
)
from kantan_agents.durable.engines.no_pickles import refuse_pickles
from kantan_agents.durable.engines.old_sqlite import give_clock
from kantan_agents.durable.storage.database import RunDatabase, close_engine, close_with, leave_to_parent
from kantan_agents.errors import DurableDatabaseError, InvalidOptionError
from kantan_agents.support.secrets import mask

if TYPE_CHECKING:
    from dbos import DBOSClient
    from sqlalchemy import Engine

WORKFLOW: Final = "kantan_agents.durable_run"
SCHEDULED: Final = "kantan_agents.scheduled_run"
# Independent of the application's version: a worker with a changed agent must execute earlier runs.
VERSION: Final = "kantan-agents-1"
DBOS_QUEUE: Final = "_dbos_internal_queue"
_DELETED: Final = 500
_CLIENT_POOL: Final = 5
_FILE_POOL: Final = {"pool_size": 2}
_STATUS: Final = {
    "PENDING": "running",
    "ENQUEUED": "queued",
    "DELAYED": "queued",
    "SUCCESS": "finished",
    "ERROR": "failed",
    "CANCELLED": "cancelled",
    "MAX_RECOVERY_ATTEMPTS_EXCEEDED": "parked",
}


class DBOSRuns:
    """Queues, finds, recovers and deletes DBOS workflows."""

    def __init__(self, database: RunDatabase, application: str) -> None:
        self._database = database
        self._application = application
        self.executor = new_executor(application)
        self._own_queue = RESUMED
        self._made: DBOSClient | None = None
        self._closing: weakref.finalize[..., DBOSRuns] | None = None
        self._lock = threading.Lock()

    def after_fork(self) -> None:
        """See ``Engine``."""
        self.executor, self._lock = new_executor(self._application), threading.Lock()
        leave_to_parent(self._made, self._closing)
        self._made = self._closing = None

    def enqueue_now(self, job: Job) -> str:
        """See ``Engine``."""
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
            "app_version": VERSION,
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
        """See ``Engine``."""
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
        """See ``Engine``."""
        self._client().delete_schedule(name)

    def executors(self) -> Sequence[str]:
        """See ``Engine``."""
        rows = self._client().list_workflows(
            status="PENDING", name=[WORKFLOW, SCHEDULED], load_input=False, load_output=False
        )
        return sorted({row.executor_id for row in rows if row.executor_id})

    def recover(self, executors: Sequence[str]) -> int:
        """See ``Engine``."""
        ended = list(executors)
        rows = self._client().list_workflows(
            status="PENDING", name=WORKFLOW, executor_id=ended, load_output=False
        )
        # In DBOS's queue: scheduled runs that were being queued, once by their ids.
        firings = self._client().list_workflows(
            status="PENDING", name=SCHEDULED, executor_id=ended, load_input=False, load_output=False
        )
        for row in firings:
            self._recover(row)
        return sum(self._recover(row) for row in rows)

    def _recover(self, row: Any) -> bool:
        if row.name == SCHEDULED:
            return _give_to_others(row, DBOS_QUEUE)
        # In a queue of this library: any process takes from DBOS's queue, even without the agent.
        agent = agent_in(_engine_run(row).stored)
        # This process takes unreadable data, and parks it with the reason.
        return _give_to_others(row, resumed_queue(agent) if agent else self._own_queue)

    def agents_waited_for(self) -> Mapping[str, int]:
        """See ``Engine``."""
        begin = resumed_queue("")
        queues = [queue.name for queue in self._client().list_queues() if queue.name.startswith(begin)]
        if not queues:
            return {}
        rows = self._client().list_workflows(
            status=["ENQUEUED"], queue_name=queues, name=WORKFLOW, load_input=False, load_output=False
        )
        return Counter((row.queue_name or "").removeprefix(begin) for row in rows)

    def cancel(self, run_id: str) -> None:
        """See ``Engine``."""
        self._client().cancel_workflow(run_id)

    def resume(self, run_id: str, queue: str | None) -> None:
        """See ``Engine``."""
        self._client().resume_workflow(run_id, queue_name=queue)

    def forget(self, run_ids: Sequence[str]) -> None:
        """See ``Engine``."""
        self._client().delete_workflows(list(run_ids))

    def find(self, run_id: str) -> EngineRun | None:
        """See ``Engine``."""
        found = self.these([run_id])
        return found[0] if found else None

    def these(self, run_ids: Sequence[str]) -> Sequence[EngineRun]:
        """See ``Engine``."""
        if not run_ids:
            return []
        rows = self._client().list_workflows(workflow_ids=list(run_ids), name=WORKFLOW)
        return [_engine_run(row) for row in rows]

    def settled(self, run_ids: Sequence[str]) -> Sequence[str]:
        """See ``Engine``."""
        from sqlalchemy import text

        self._client()  # it creates the tables
        # The table as DBOS documents it: its own functions read whole rows, including the results.
        ids, table = "json_each(:ids)", "workflow_status"
        if not self._database.is_sqlite:
            ids, table = "json_array_elements_text(CAST(:ids AS json)) AS t(value)", f"dbos.{table}"
        statement = text(
            f"SELECT value FROM {ids} WHERE NOT EXISTS (SELECT 1 FROM {table} "  # noqa: S608
            f"WHERE workflow_uuid = value AND status IN ('PENDING', 'ENQUEUED', 'DELAYED'))"
        )
        with self._database.read() as connection:
            return list(connection.execute(statement, {"ids": json.dumps(run_ids)}).scalars())

    def runs(
        self, statuses: Sequence[str] | None, queue: str | None, limit: int, offset: int
    ) -> Sequence[EngineRun]:
        """See ``Engine``."""
        own = None if statuses is None else [name for name, known in _STATUS.items() if known in statuses]
        rows = self._client().list_workflows(
            status=own, queue_name=queue, limit=limit, offset=offset, sort_desc=True, name=WORKFLOW
        )
        return [_engine_run(row) for row in rows]

    def forget_firings(self, moment: datetime) -> None:
        """See ``Engine``."""
        while ended := self._ended_before(moment, _DELETED, SCHEDULED):
            self.forget(ended)

    def ended_before(self, moment: datetime, limit: int) -> Sequence[str]:
        """See ``Engine``."""
        return self._ended_before(moment, limit, WORKFLOW)

    def _ended_before(self, moment: datetime, limit: int, name: str) -> list[str]:
        rows = self._client().list_workflows(
            status=["SUCCESS", "ERROR", "CANCELLED"],
            completed_before=moment.isoformat(),
            name=name,
            limit=limit,
            load_input=False,
            load_output=False,
        )
        return [row.workflow_id for row in rows]

    def _close_client(self) -> None:
        with self._lock:
            self._made = None
            closing, self._closing = self._closing, None
        if closing is not None:
            closing()

    def _client(self) -> DBOSClient:
        from dbos import DBOSClient, DBOSPortableJSONSerializer

        with self._lock:
            if self._made is None:
                pool = None if self._database.is_sqlite else self._database.server_engine(_CLIENT_POOL)
                try:
                    give_clock()
                    refuse_pickles()
                    self._create_tables(pool)
                    self._made = DBOSClient(
                        system_database_url=self._database.url,
                        system_database_engine=pool,
                        application_name=self._application,
                        serializer=DBOSPortableJSONSerializer(),
                        retry_connection_errors=False,
                    )
                    self._closing = close_with(self, partial(_close, self._made, pool))
                except Exception as error:
                    if pool is not None:
                        close_engine(pool)
                    if isinstance(error, DurableDatabaseError):
                        raise
                    raise self._database.unusable(error) from error
            return self._made

    def _create_tables(self, pool: Engine | None) -> None:
        """Create DBOS's tables, unless a process was started: a client does not."""
        from sqlalchemy import inspect

        with self._database.read() as connection:
            schema = None if self._database.is_sqlite else "dbos"
            has_tables = inspect(connection).has_table("workflow_status", schema=schema)
        if not has_tables:
            self._change_tables(pool)

    def _change_tables(self, pool: Engine | None) -> None:
        from dbos import DBOSPortableJSONSerializer
        from dbos._sys_db import SystemDatabase

        # As `DBOS.migrate` does, whose connections wait for an answer without a limit.
        system = SystemDatabase.create(
            self._database.url, _FILE_POOL, pool, "dbos", DBOSPortableJSONSerializer(), None
        )
        try:
            with self._database.changing_tables():
                system.run_migrations()
        finally:
            system.destroy()


def _close(client: DBOSClient, pool: Engine | None) -> None:
    client.destroy()
    if pool is not None:
        close_engine(pool)


def _give_to_others(row: Any, queue: str) -> bool:
    # DBOS recovers the runs of other processes only for its Conductor, so this name is private.
    from dbos._dbos import _get_dbos_instance

    system = _get_dbos_instance()._sys_db
    return bool(system.reenqueue_for_recovery(row.workflow_id, [row.executor_id], queue))


def _engine_run(row: Any) -> EngineRun:
    # DBOS returns unreadable data as a string.
    arguments = (row.input.get("args") if isinstance(row.input, dict) else None) or ()
    return EngineRun(
        run_id=row.workflow_id,
        status=_STATUS.get(row.status, row.status.lower()),
        queue=None if (row.queue_name or RESUMED).startswith((RESUMED, DBOS_QUEUE)) else row.queue_name,
        executor=row.executor_id,
        created_at=_moment(row.created_at),
        updated_at=_moment(row.updated_at),
        stored=plain(arguments[0]) if arguments else None,
        outcome=plain(row.output),
        error=None if row.error is None else mask(str(row.error)),  # earlier versions stored it unmasked
    )


def _moment(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
