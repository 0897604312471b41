"""Writes results in the background, many in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import anyio
import attrs
from anyio.to_thread import run_sync

from kantan_agents.errors import TraceDatabaseError
from kantan_agents.lab.evaluation.experiment.plan import MissingRun
from kantan_agents.lab.evaluation.experiment.results import CaseResult
from kantan_agents.lab.evaluation.experiment.rows import EvaluationRow, RatedScore
from kantan_agents.lab.evaluation.experiment.spent import add_spent, total
from kantan_agents.lab.evaluation.experiment.write_rows import write_result, write_scores
from kantan_agents.lab.experiment.prices import UsageMetrics
from kantan_agents.traces.store.connection import changing, transaction

# Results within this time are written together. A killed process loses no more.
_GATHER_SECONDS = 0.1


@attrs.define(eq=False)
class UnwrittenResult:
    """A result in the queue; ``result`` is None if it is already stored and only gets scores."""

    unit: MissingRun
    trace_id: str | None
    result: CaseResult | None
    row: int | None = None
    scores: Sequence[RatedScore] = ()


class ResultWriter:
    """Writes results and scores in a worker thread; whatever waits meanwhile is written together.

    A result is written before its evaluation, so that its cost is not lost.
    """

    def __init__(
        self, path: Path, evaluation: EvaluationRow, failed: Callable[[TraceDatabaseError], None]
    ) -> None:
        self._path = path
        self._evaluation = evaluation
        self._failed = failed
        self._waiting: list[UnwrittenResult] = []
        self._wake = anyio.Event()
        self._closed = anyio.Event()
        self._is_broken = False
        self._spent: dict[tuple[str, str], list[UsageMetrics]] = {}

    def put(self, kept: UnwrittenResult) -> None:
        """Queue a result."""
        self._waiting.append(kept)
        self._wake.set()

    def spend(self, variant_hash: str, spender: str, used: UsageMetrics) -> None:
        """Queue the usage of a run or an evaluator."""
        self._spent.setdefault((variant_hash, spender), []).append(used)
        self._wake.set()

    def close(self) -> None:
        """Let ``work`` end after everything is written."""
        self._closed.set()
        self._wake.set()

    async def work(self) -> None:
        """Write until ``close``; after cancellation, waiting results are still written."""
        try:
            while not self._closed.is_set() or self._waiting or self._spent:
                await self._wake.wait()
                with anyio.move_on_after(_GATHER_SECONDS):
                    await self._closed.wait()
                self._wake = anyio.Event()
                await self._write()
        finally:
            await self.finish()

    async def finish(self) -> None:
        """Write the rest, such as the usage of canceled runs."""
        with anyio.CancelScope(shield=True):
            await self._write()

    async def _write(self) -> None:
        waiting, self._waiting = self._waiting, []
        spent, self._spent = self._spent, {}
        if not (waiting or spent) or self._is_broken:
            return
        try:
            # One after the other even if cancelled: a thread cannot be stopped midway.
            with anyio.CancelScope(shield=True):
                await run_sync(self._write_all, waiting, spent)
        except TraceDatabaseError as error:
            self._is_broken = True
            self._failed(error)

    def _write_all(
        self, waiting: Sequence[UnwrittenResult], spent: Mapping[tuple[str, str], Sequence[UsageMetrics]]
    ) -> None:
        with changing(self._path) as connection, transaction(connection):
            for kept in dict.fromkeys(waiting):
                unit = kept.unit
                if kept.result is not None:
                    kept.row = write_result(
                        connection,
                        self._evaluation,
                        unit.case,
                        unit.variant.hash,
                        kept.result,
                        replaces=unit.replaces,
                    )
                    kept.result = None
                if kept.scores and kept.row is not None:
                    has_older = unit.row is not None  # scores of an evaluator's earlier version
                    write_scores(
                        connection, kept.row, kept.scores, trace_id=kept.trace_id, replaces=has_older
                    )
            add_spent(connection, self._evaluation.id, {key: total(used) for key, used in spent.items()})
