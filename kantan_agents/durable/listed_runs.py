"""Lists durable runs."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from kantan_agents.durable.engines.engine import EngineRun
from kantan_agents.durable.middleware import check_names
from kantan_agents.durable.open_database import OpenDatabase
from kantan_agents.durable.outcome import DurableRun
from kantan_agents.durable.storage.approvals import CLOSED
from kantan_agents.durable.stored_run import StoredRun
from kantan_agents.errors import InvalidOptionError
from kantan_agents.support.arguments import checked_int

ENDED = ("finished", "failed", "cancelled", "parked")
STATUSES = ("queued", "running", "waiting", *ENDED)
_PAGE, _LARGEST_PAGE = 100, 1_000
_KNOWN_AS: Mapping[str, tuple[str, ...]] = {"waiting": (), "parked": ("parked", "cancelled")}
Page = tuple[int, Sequence[EngineRun]]


class ListedRuns(OpenDatabase):
    """The durable runs of a database, started or not."""

    async def list_runs(
        self, *, status: str | None = None, queue: str | None = None, limit: int | None = 100
    ) -> list[DurableRun]:
        """Return the latest runs, the latest first.

        Args:
            status: Only runs of this status: ``"queued"``, ``"running"``, ``"waiting"``, ``"finished"``,
                ``"failed"``, ``"cancelled"`` or ``"parked"``.
            queue: Only runs of this queue.
            limit: Their number at most; None for all.

        Raises:
            InvalidOptionError: E75, the status does not exist, the queue has no name, or the limit is below
                1.
            DurableDatabaseError: E156, the database cannot be read.
        """
        if status is not None and status not in STATUSES:
            reason = f"must be one of {', '.join(STATUSES)}, not {status!r}"
            raise InvalidOptionError(option="status", reason=reason)
        if queue is not None:
            check_names(queue=queue)
        if limit is not None:
            checked_int("limit", limit, 1)
        return await self._in_thread(lambda: self._listed(status, queue, limit))

    def _listed(self, status: str | None, queue: str | None, limit: int | None) -> list[DurableRun]:
        known = None if status is None else _KNOWN_AS.get(status, (status,))

        def of_engine(size: int, offset: int) -> Page:
            runs = self._engine.runs(known, queue, size, offset)
            return len(runs), runs

        def of_people(size: int, offset: int) -> Page:
            ids = self._approvals.waiting(size, offset, closed=status == "cancelled")
            return len(ids), self._engine.these(ids)

        pages = [of_engine] if known is None or known else []
        pages += [of_people] if status in ("waiting", "cancelled") else []
        listed = heapq.merge(*(self._paged(page, limit) for page in pages), key=_age, reverse=True)
        fitting = (
            run for run in listed if status in (None, run.status) and (queue is None or run.queue == queue)
        )
        return list(itertools.islice(fitting, limit))

    def _paged(self, page: Callable[[int, int], Page], limit: int | None) -> Iterator[DurableRun]:
        """Yield the runs page by page: their status is only known then."""
        size, offset = min(limit or _LARGEST_PAGE, _LARGEST_PAGE), 0
        seen: set[str] = set()  # a run that starts meanwhile moves all others to a later position
        while True:
            count, runs = page(size, offset)
            shown = self._shown([run for run in runs if run.run_id not in seen])
            yield from sorted(shown, key=_age, reverse=True)
            if count < size:
                return
            seen |= {run.run_id for run in runs}
            offset, size = offset + count, max(size, _PAGE)

    def _shown(self, runs: Sequence[EngineRun]) -> list[DurableRun]:
        ended = [run.run_id for run in runs if run.status == "finished"]
        waited = self._approvals.waited_among(ended) if ended else {}
        cancelled = [run.run_id for run in runs if run.status == "cancelled"]
        reasons = self._steps.reasons(cancelled) if cancelled else {}
        return [_durable_run(run, reasons.get(run.run_id), waited.get(run.run_id, "")) for run in runs]

    async def get(self, run_id: str) -> DurableRun:
        """Return a run.

        Raises:
            DurableRunNotFoundError: E154, no run has this id.
        """
        return (await self._in_thread(lambda: self._shown([self._found(run_id)])))[0]


def _age(run: DurableRun) -> tuple[float, str]:
    # Some databases store whole seconds.
    return (0.0 if run.created_at is None else run.created_at.timestamp(), run.run_id)


def _durable_run(run: EngineRun, reason: str | None, waited: str | None) -> DurableRun:
    agent = "?"
    with suppress(Exception):  # damaged, or of a later version: it is listed all the same
        agent = StoredRun.of_json(run.run_id, run.stored or "").agent
    status: Any = "waiting" if waited is None else "cancelled" if waited == CLOSED else run.status
    if reason is not None:
        status = "parked"
    elif status == "queued" and run.queue is None:
        reason = f"it waits for a process that has the agent {agent!r}"
    return DurableRun(
        run.run_id, agent, status, run.queue, run.created_at, run.updated_at, run.error or reason
    )
