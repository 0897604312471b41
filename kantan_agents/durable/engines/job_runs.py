"""Shows, cancels, resumes and deletes stored jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from kantan_agents.durable.engines.engine import RESUMED, EngineRun, resumed_queue
from kantan_agents.durable.engines.jobs import AGAIN, JOBS, JobStore

_OPEN = ("queued", "running")
_ENDED = ("finished", "failed", "cancelled")
_COLUMNS = "run_id, status, queue, executor, created_at, updated_at, stored, outcome, error"


class JobRuns(JobStore):
    """The part of ``Engine`` for any process with the database."""

    def find(self, run_id: str) -> EngineRun | None:
        """See ``Engine``."""
        return next(iter(self.these([run_id])), None)

    def forget_firings(self, moment: datetime) -> None:
        """Delete nothing: a schedule only stores its next time."""

    def cancel(self, run_id: str, number: int | None = None) -> None:
        """Cancel a job; with a number, only if that is its last handover."""
        self._execute(
            f"UPDATE {JOBS} SET status = 'cancelled', updated_at = {{now}} WHERE run_id = :run_id "
            "AND status IN ('queued', 'running', 'parked') "
            "AND handing = COALESCE(CAST(:number AS INTEGER), handing)",
            run_id=run_id,
            number=number,
        )

    def resume(self, run_id: str, queue: str | None) -> None:
        """See ``Engine``."""
        self._execute(
            f"UPDATE {JOBS} SET status = 'queued', queue = COALESCE(CAST(:queue AS TEXT), queue), "
            f"attempts = 0, dedup_key = NULL, error = NULL, updated_at = {{now}}, {AGAIN} "
            "WHERE run_id = :run_id AND status IN ('cancelled', 'parked')",
            run_id=run_id,
            queue=queue,
        )

    def forget(self, run_ids: Sequence[str]) -> None:
        """See ``Engine``."""
        self._execute(f"DELETE FROM {JOBS} WHERE run_id IN :ids", ids=list(run_ids))

    def ended_before(self, moment: datetime, limit: int) -> list[str]:
        """See ``Engine``."""
        rows = self._execute(
            f"SELECT run_id FROM {JOBS} WHERE application = :application AND status IN :ended "
            "AND updated_at < :moment ORDER BY updated_at LIMIT :limit",
            ended=list(_ENDED),
            moment=moment.timestamp(),
            limit=limit,
        )
        return [row.run_id for row in rows]

    def these(self, run_ids: Sequence[str]) -> list[EngineRun]:
        """See ``Engine``."""
        rows = self._execute(
            f"SELECT {_COLUMNS} FROM {JOBS} WHERE application = :application AND run_id IN :ids",
            ids=list(run_ids),
        )
        return [_engine_run(row) for row in rows]

    def settled(self, run_ids: Sequence[str]) -> list[str]:
        """See ``Engine``."""
        rows = self._execute(
            f"SELECT run_id FROM {JOBS} WHERE run_id IN :ids AND status IN :open",
            ids=list(run_ids),
            open=list(_OPEN),
        )
        not_ended = {row.run_id for row in rows}
        return [run_id for run_id in run_ids if run_id not in not_ended]

    def runs(
        self, statuses: Sequence[str] | None, queue: str | None, limit: int, offset: int
    ) -> Sequence[EngineRun]:
        """See ``Engine``."""
        wanted = "" if statuses is None else "AND status IN :statuses "
        wanted += "" if queue is None else "AND queue = :queue "
        rows = self._execute(
            f"SELECT {_COLUMNS} FROM {JOBS} WHERE application = :application {wanted}"
            "ORDER BY created_at DESC, run_id DESC LIMIT :limit OFFSET :offset",
            statuses=list(statuses or ()),
            queue=queue,
            limit=limit,
            offset=offset,
        )
        return [_engine_run(row) for row in rows]

    def agents_waited_for(self) -> Mapping[str, int]:
        """See ``Engine``."""
        beginning = resumed_queue("")
        rows = self._execute(
            f"SELECT queue, COUNT(*) AS count FROM {JOBS} WHERE application = :application "
            "AND status = 'queued' AND SUBSTR(queue, 1, :length) = :beginning GROUP BY queue",
            length=len(beginning),
            beginning=beginning,
        )
        return {row.queue[len(beginning) :]: row.count for row in rows}

    def executors(self) -> list[str]:
        """See ``Engine``."""
        rows = self._execute(
            f"SELECT DISTINCT executor FROM {JOBS} WHERE application = :application AND status = 'running' "
            "AND executor IS NOT NULL ORDER BY executor"
        )
        return [row.executor for row in rows]

    def unschedule(self, name: str) -> None:
        """See ``Engine``."""
        self._execute(
            "DELETE FROM kantan_agents_durable_schedules WHERE application = :application AND name = :name",
            name=name,
        )


def _engine_run(row: Any) -> EngineRun:
    return EngineRun(
        run_id=row.run_id,
        status=row.status,
        queue=None if (row.queue or RESUMED).startswith(RESUMED) else row.queue,
        executor=row.executor,
        created_at=datetime.fromtimestamp(row.created_at, timezone.utc),
        updated_at=datetime.fromtimestamp(row.updated_at, timezone.utc),
        stored=row.stored,
        outcome=row.outcome,
        error=row.error,
    )
