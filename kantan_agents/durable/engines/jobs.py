"""Runs and schedules for an engine without its own tables.

Handovers are numbered, so one from before a cancellation, resumption or takeover changes nothing. An active
job belongs to a claim, as in ``StepStore``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import attrs

from kantan_agents.durable.engines.engine import Job
from kantan_agents.durable.storage.database import RunDatabase

JOBS = "kantan_agents_durable_jobs"
AGAIN = "handing = handing + 1, is_handed = 0, executor = NULL, claim = NULL, start_at = NULL"
_SCHEDULES = "kantan_agents_durable_schedules"
_NOT_HANDED = f"FROM {JOBS} WHERE application = :application AND status = 'queued' AND is_handed = 0"
_NOT_CHECKED = (
    f"FROM {JOBS} WHERE application = :application AND status = 'queued' AND is_handed = 1 "
    "AND checked_at < {now} - :seconds"
)


@attrs.frozen
class Handing:
    """A numbered handover of a job; ``delay`` is in seconds."""

    run_id: str
    number: int
    queue: str
    priority: int | None
    delay: float


@attrs.frozen
class Schedule:
    """A stored schedule."""

    name: str
    cron: str
    timezone: str | None
    queue: str
    stored: str
    next_at: float


class JobStore:
    """Queues jobs, gives them to processes, and stores outcomes."""

    def __init__(self, database: RunDatabase, application: str) -> None:
        self._database = database
        self._application = application

    def add(self, job: Job) -> str:
        """Store a waiting job; return its id, or the one with its ``dedup_key``."""
        key = None if job.dedup_key is None else f"{job.queue}\n{job.dedup_key}"
        values = {**attrs.asdict(job), "key": key}
        self._execute(
            f"INSERT INTO {JOBS} (run_id, application, queue, status, handing, is_handed, attempts, "
            "priority, dedup_key, start_at, created_at, updated_at, checked_at, stored) "
            "SELECT :run_id, :application, :queue, 'queued', 1, 0, 0, CAST(:priority AS INTEGER), "
            "CAST(:key AS TEXT), {now} + CAST(:delay AS DOUBLE PRECISION), {now}, {now}, {now}, :stored "
            "WHERE true ON CONFLICT DO NOTHING",
            **values,
        )
        rows = self._execute(
            f"SELECT run_id FROM {JOBS} WHERE run_id = :run_id OR (application = :application AND "
            "dedup_key = :key AND status IN ('queued', 'running')) ORDER BY run_id = :run_id DESC",
            **values,
        )
        # The other one may have ended between the two statements.
        return str(rows[0].run_id) if rows else self.add(job)

    def begin(self, run_id: str, stored: str, executor: str, claim: str) -> None:
        """Store a job that its process executes itself."""
        self._execute(
            f"INSERT INTO {JOBS} (run_id, application, status, handing, is_handed, attempts, executor, "
            "claim, created_at, updated_at, checked_at, stored) "
            "VALUES (:run_id, :application, 'running', 0, 1, 1, :executor, :claim, {now}, {now}, {now}, "
            ":stored)",
            run_id=run_id,
            stored=stored,
            executor=executor,
            claim=claim,
        )

    def claim(self, run_id: str, number: int, executor: str, claim: str, most: int) -> tuple[str, str | None]:
        """Take a job, or park it after ``most`` claims; return its status, and its stored form if taken."""
        values = {"run_id": run_id, "number": number, "executor": executor, "claim": claim, "most": most}
        # Only queued jobs: a live process holds a lock on its job, and `give` queues the others.
        where = "WHERE run_id = :run_id AND handing = :number AND status = 'queued'"
        taken = self._execute(
            f"UPDATE {JOBS} SET status = 'running', executor = :executor, claim = :claim, "
            f"attempts = attempts + 1, updated_at = {{now}} {where} AND attempts <= :most RETURNING stored",
            **values,
        )
        if taken:
            return "running", str(taken[0].stored)
        self._execute(
            f"UPDATE {JOBS} SET status = 'parked', updated_at = {{now}} {where} AND attempts > :most",
            **values,
        )
        rows = self._execute(
            f"SELECT status FROM {JOBS} WHERE run_id = :run_id AND handing = :number", **values
        )
        return (str(rows[0].status), None) if rows else ("moved", None)

    def give_back(self, run_id: str, claim: str) -> None:
        """Release a job that has not started."""
        self._execute(
            f"UPDATE {JOBS} SET status = 'queued', executor = NULL, attempts = attempts - 1 "
            "WHERE run_id = :run_id AND claim = :claim AND status = 'running'",
            run_id=run_id,
            claim=claim,
        )

    def end(
        self, run_id: str, claim: str, status: str, *, outcome: str | None = None, error: str | None = None
    ) -> None:
        """Store a job's end, if the claim still has it."""
        self._execute(
            f"UPDATE {JOBS} SET status = :status, outcome = :outcome, error = :error, updated_at = {{now}} "
            "WHERE run_id = :run_id AND claim = :claim AND status = 'running'",
            run_id=run_id,
            claim=claim,
            status=status,
            outcome=outcome,
            error=error,
        )

    def give(
        self, executors: Sequence[str], queue_of: Callable[[str], str], but: Collection[str] = ()
    ) -> int:
        """Release these processes' active jobs, except ``but``; return their number."""
        rows = self._execute(
            f"SELECT run_id, executor, stored FROM {JOBS} WHERE application = :application "
            "AND status = 'running' AND executor IN :executors",
            executors=list(executors),
        )
        return sum(
            len(
                self._execute(
                    f"UPDATE {JOBS} SET status = 'queued', queue = COALESCE(queue, :queue), "
                    f"updated_at = {{now}}, {AGAIN} "
                    "WHERE run_id = :run_id AND status = 'running' AND executor = :executor RETURNING run_id",
                    run_id=row.run_id,
                    executor=row.executor,
                    queue=queue_of(row.stored),
                )
            )
            for row in rows
            if row.run_id not in but
        )

    def has_work(self, seconds: float) -> bool:
        """Return whether `due`, `not_handed` or `not_checked` has anything, in one statement."""
        rows = self._execute(
            f"SELECT EXISTS (SELECT 1 FROM {_SCHEDULES} WHERE application = :application "
            f"AND next_at <= {{now}}) OR EXISTS (SELECT 1 {_NOT_HANDED}) OR EXISTS (SELECT 1 {_NOT_CHECKED})",
            seconds=seconds,
        )
        return bool(rows[0][0])

    def not_handed(self, limit: int) -> list[Handing]:
        """Return waiting jobs without a handover."""
        rows = self._execute(
            "SELECT run_id, handing, queue, priority, COALESCE(start_at - {now}, 0) AS delay "
            f"{_NOT_HANDED} ORDER BY created_at LIMIT :limit",
            limit=limit,
        )
        return [
            Handing(row.run_id, row.handing, row.queue, row.priority, max(row.delay, 0.0)) for row in rows
        ]

    def not_checked(self, seconds: float, limit: int) -> list[Handing]:
        """Return waiting jobs without a recent handover or check."""
        rows = self._execute(
            f"SELECT run_id, handing, queue {_NOT_CHECKED} ORDER BY checked_at LIMIT :limit",
            seconds=seconds,
            limit=limit,
        )
        return [Handing(row.run_id, row.handing, row.queue, None, 0.0) for row in rows]

    def note_handed(self, job: Handing, *, is_handed: bool = True) -> None:
        """Note a job's handover, failed or lost."""
        self._execute(
            f"UPDATE {JOBS} SET is_handed = :handed, checked_at = {{now}} "
            "WHERE run_id = :run_id AND handing = :number",
            handed=int(is_handed),
            run_id=job.run_id,
            number=job.number,
        )

    def keep_schedule(self, schedule: Schedule) -> None:
        """Store or replace a schedule."""
        self._execute(
            f"INSERT INTO {_SCHEDULES} "
            "(application, name, cron, timezone, queue, stored, next_at) VALUES "
            "(:application, :name, :cron, :timezone, :queue, :stored, :next_at) "
            "ON CONFLICT (application, name) DO UPDATE SET cron = excluded.cron, queue = excluded.queue, "
            "timezone = excluded.timezone, stored = excluded.stored, next_at = excluded.next_at",
            **attrs.asdict(schedule),
        )

    def due(self) -> tuple[float, list[Schedule]]:
        """Return the database's time, in seconds since 1970, and the due schedules."""
        rows = self._execute("SELECT {now} AS now")
        found = self._execute(
            f"SELECT name, cron, timezone, queue, stored, next_at FROM {_SCHEDULES} "
            "WHERE application = :application AND next_at <= :now",
            now=rows[0].now,
        )
        return float(rows[0].now), [Schedule(*row) for row in found]

    def fired(self, schedule: Schedule, next_at: float) -> None:
        """Note a schedule's next time, unless it was replaced."""
        self._execute(
            f"UPDATE {_SCHEDULES} SET next_at = :next_at WHERE application = :application "
            "AND name = :name AND cron = :cron AND next_at = :before",
            name=schedule.name,
            cron=schedule.cron,
            before=schedule.next_at,
            next_at=next_at,
        )

    def _execute(self, statement: str, **values: Any) -> Sequence[Any]:
        from sqlalchemy import Text, bindparam, text

        sql = statement.replace("{now}", self._database.now)
        made = text(sql)
        lists = [name for name, value in values.items() if isinstance(value, list) and f":{name}" in sql]
        made = made.bindparams(*(bindparam(name, expanding=True, type_=Text) for name in lists))
        given = {"application": self._application, **values}
        with self._database.write() as connection:
            found = connection.execute(made, {name: given[name] for name in made._bindparams})
            return found.all() if found.returns_rows else ()
