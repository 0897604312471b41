"""``Work``: makes the runs of an evaluation that are missing, and keeps what is done."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from agents.tracing.scope import Scope
from anyio.to_thread import run_sync

from kantan_agents.lab.evaluation.evaluators.evaluator import Evaluator
from kantan_agents.lab.evaluation.experiment.missing_runs import MissingRun
from kantan_agents.lab.evaluation.experiment.one_case import CaseRunner, metadata_of
from kantan_agents.lab.evaluation.experiment.progress import Progress
from kantan_agents.lab.evaluation.experiment.result_writer import ResultWriter, UnwrittenResult
from kantan_agents.lab.evaluation.experiment.results import CaseResult
from kantan_agents.lab.evaluation.experiment.rows import EvaluationRow, read_results
from kantan_agents.lab.evaluation.experiment.scoring import scores_of
from kantan_agents.lab.evaluation.experiment.spending import EvaluationSpending
from kantan_agents.lab.replay.experiment.fatal_errors import is_fatal
from kantan_agents.support.log import get_logger

_log = get_logger("kantan_agents.evaluation")

# Results that are read again at once, to be scored by other evaluators.
_AT_ONCE = 256

# Seconds from the start of one worker to that of the next. Workers that start together stay together: all
# wait for their models at the same time, and then all have work at the same time. Apart, some work while
# others wait.
_START_APART = 0.001


class Work:
    """The runs of an evaluation that are still to be made or scored.

    Args:
        path: The trace database.
        row: The evaluation.
        units: What is missing.
        total: Number of all runs.
        runner: Makes a run.
        spending: The budget.
        progress: Called whenever a run is done.

    Attributes:
        stopped: The error that ended it before everything was done.
    """

    def __init__(
        self,
        path: Path,
        row: EvaluationRow,
        units: Sequence[MissingRun],
        total: int,
        runner: CaseRunner,
        spending: EvaluationSpending,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self._path = path
        self._row = row
        self._units = units
        self._total = total
        self._runner = runner
        self._spending = spending
        self._progress = progress
        self._done = total - len(units)
        self._kept = total - sum(unit.row is None for unit in units)
        self._failed = 0
        self._running = 0
        self._settled = anyio.Event()
        self._keeper = ResultWriter(path, row, self._stop)
        self.stopped: Exception | None = None

    async def make(self, workers: int) -> None:
        """Do all that is missing, so many at a time."""
        self._report()
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._keeper.work)
                group.start_soon(self._make, workers)
        except BaseException as error:
            # What an evaluator raises beside errors, such as SystemExit, is raised as it is.
            first = _first_of(error)
            if first is error:
                raise
            raise first from None

    async def _make(self, workers: int) -> None:
        # A run inside a trace that the caller has opened would not have one of its own. This task has its own
        # context, as have those that it starts.
        Scope.set_current_trace(None)
        Scope.set_current_span(None)
        try:
            await self._score_stored(workers)
            units = iter([unit for unit in self._units if unit.row is None])
            if self._spending.is_limited:
                units = await self._explored(units)
            async with anyio.create_task_group() as group:
                for number in range(min(workers, len(self._units))):
                    group.start_soon(self._worker, units, number * _START_APART)
        finally:
            self._keeper.close()

    async def _explored(self, units: Iterator[MissingRun]) -> Iterator[MissingRun]:
        """Run alone, one after the other, until all variants and judges are known; return what is left."""
        left: list[MissingRun] = []
        for unit in units:
            if self.stopped is None and not self._spending.knows(unit.variant.hash, unit.evaluators):
                await self._run(unit)
            else:
                left.append(unit)
        return iter(left)

    async def _worker(self, units: Iterator[MissingRun], delay: float) -> None:
        await anyio.sleep(delay)
        for unit in units:
            if self.stopped is not None:
                return
            await self._run(unit)

    async def _run(self, unit: MissingRun) -> None:
        async with self._budgeted(unit.variant.hash, unit.evaluators) as may_run:
            if not may_run:
                return
            result, error = await self._runner.run(unit)
            self._spending.spend_on_run(unit.variant.hash, result)
            if is_fatal(error):
                self._stop(error)
                return
            kept = UnwrittenResult(unit.case, unit.variant.hash, result, replaces=unit.replaces)
            self._keeper.put(kept)
            self._kept += 1
            self._failed += error is not None
            await self._score(unit, result, kept)

    @asynccontextmanager
    async def _budgeted(self, variant: str | None, evaluators: Sequence[Evaluator]) -> AsyncIterator[bool]:
        """Reserve what a run may use, and yield whether it may begin; otherwise the evaluation has ended."""
        reserved = self._spending.reserve(variant, evaluators)
        while reserved is None and self._running:
            # Another run may use less than what is reserved for it.
            await self._settled.wait()
            reserved = self._spending.reserve(variant, evaluators)
        if reserved is None or self.stopped is not None:
            self._stop(self._spending.used_up(variant, evaluators, self._kept, self._total))
            yield False
            return
        self._running += 1
        try:
            yield True
        finally:
            self._spending.release(reserved)
            self._running -= 1
            self._settled.set()
            self._settled = anyio.Event()

    async def _score_stored(self, workers: int) -> None:
        """Ask the evaluators that are new, or of another version, about results that are stored."""
        units = {unit.row: unit for unit in self._units if unit.row is not None}
        rows = [row for row in units if row is not None]

        async def score(stored: Iterator[tuple[int, str, CaseResult]]) -> None:
            for number, _, result in stored:
                unit = units[number]
                async with self._budgeted(None, unit.evaluators) as may_ask:
                    if not may_ask:
                        return
                    await self._score(
                        unit, result, UnwrittenResult(unit.case, unit.variant.hash, None, number)
                    )

        for start in range(0, len(rows), _AT_ONCE):
            found = await run_sync(self._read, rows[start : start + _AT_ONCE])
            known: list[tuple[int, str, CaseResult]] = []
            for one in found:
                if self._spending.is_limited and not self._spending.knows(None, units[one[0]].evaluators):
                    await score(iter([one]))
                else:
                    known.append(one)
            stored = iter(known)
            async with anyio.create_task_group() as group:
                for _ in range(workers):
                    group.start_soon(score, stored)

    def _read(self, rows: Sequence[int]) -> list[tuple[int, str, CaseResult]]:
        return list(read_results(self._path, self._row, rows))

    async def _score(self, unit: MissingRun, result: CaseResult, kept: UnwrittenResult) -> None:
        scores, watches = await scores_of(
            result.finished(unit.case),
            unit.evaluators,
            metadata_of(self._row.name, unit),
            self._runner.watched,
            records_contents=not result.is_withheld,
        )
        scored = {one.evaluator for one in scores if one.score is not None and one.score.value is not None}
        for name, watch in watches.items():
            tokens = watch.input_tokens + watch.output_tokens
            self._spending.spend_on_scores(name, tokens, watch.cost, has_scored=name in scored)
        self._keeper.put(
            UnwrittenResult(
                kept.case,
                kept.variant_hash,
                None,
                trace_id=result.trace_id,
                replaces=unit.row is not None,
                scores=scores,
                after=kept,
            )
        )
        self._done += 1
        self._report()

    def _stop(self, error: Exception | None) -> None:
        self.stopped = self.stopped or error

    def _report(self) -> None:
        if self._progress is None:
            return
        spending = self._spending
        try:
            self._progress(Progress(self._done, self._total, self._failed, spending.tokens, spending.cost))
        except Exception as error:  # noqa: BLE001 - as of an observer: it must not break the evaluation
            _log.error("progress callback failed", evaluation=self._row.name, error=repr(error))


def _first_of(error: BaseException) -> BaseException:
    """Return the first of the errors that task groups have gathered; any other error unchanged."""
    while isinstance(inner := getattr(error, "exceptions", None), tuple) and inner:
        error = inner[0]
    return error
