"""Makes the missing runs of an evaluation, and stores the results."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import anyio
import attrs
from agents.tracing.scope import Scope
from anyio.to_thread import run_sync

from kantan_agents.errors import EvaluationBudgetError
from kantan_agents.lab.evaluation.experiment.one_case import CaseRunner, scores_of
from kantan_agents.lab.evaluation.experiment.plan import MissingRun
from kantan_agents.lab.evaluation.experiment.result_writer import ResultWriter, UnwrittenResult
from kantan_agents.lab.evaluation.experiment.results import CaseResult
from kantan_agents.lab.evaluation.experiment.rows import EvaluationRow, read_results
from kantan_agents.lab.evaluation.experiment.spent import RUNS
from kantan_agents.lab.experiment.prices import UsageMetrics
from kantan_agents.lab.experiment.spending import Spending
from kantan_agents.lab.experiment.work import Work, is_fatal
from kantan_agents.support.ledger import Amounts
from kantan_agents.support.log import get_logger

_log = get_logger("kantan_agents.evaluation")

# Batch size of stored results that other evaluators score.
_AT_ONCE = 256
# This many earlier results predict the usage of a run.
_LEARN_FROM = 1_000


@attrs.frozen
class Progress:
    """Progress of an evaluation.

    Attributes:
        done: Finished and scored runs, including earlier starts.
        total: All runs.
        failed: Failed runs of this start.
        tokens: Input and output tokens of all starts, including judges.
        cost: Their price; None without prices.
    """

    done: int
    total: int
    failed: int = 0
    tokens: int = 0
    cost: float | None = None


class EvaluationWork:
    """The missing runs and scores of an evaluation.

    Each run reserves the usage of the most expensive one of its variant and evaluators so far.
    """

    def __init__(
        self,
        path: Path,
        row: EvaluationRow,
        units: Sequence[MissingRun],
        total: int,
        runner: CaseRunner,
        spending: Spending,
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
        self._work = Work(spending)
        self._writer = ResultWriter(path, row, self._work.stop)

    @property
    def stopped(self) -> Exception | None:
        """The error that stopped it early."""
        return self._work.stopped

    def learn(self, rows: Sequence[int]) -> None:
        """Learn the usage of runs from the latest of these results."""
        for _, variant, result in self._read(rows[-_LEARN_FROM:]):
            if _shows_use(result):
                self._spending.learn(("run", variant), {"tokens": result.tokens, "cost": result.cost})

    async def make(self, workers: int) -> None:
        """Do all missing work, with ``workers`` concurrent runs."""
        self._report()
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._writer.work)
                group.start_soon(self._make, workers)
        except BaseException as error:
            # Exceptions of evaluators that are not errors, such as SystemExit, propagate unchanged.
            first = _first_of(error)
            if first is error:
                raise
            raise first from None
        finally:
            await self._writer.finish()

    async def _make(self, workers: int) -> None:
        # Inside the caller's trace, a run would not get a separate one. This task and the tasks that it
        # starts have their own context.
        Scope.set_current_trace(None)
        Scope.set_current_span(None)
        try:
            await self._score_stored(workers)
            missing = [unit for unit in self._units if unit.row is None]
            await self._work.do(missing, self._run, workers, self._is_known)
        finally:
            self._writer.close()

    async def _run(self, unit: MissingRun) -> None:
        async with self._paid(unit) as may_run:
            if not may_run:
                return
            result, error = await self._runner.run(unit, partial(self._writer.spend, unit.variant.hash, RUNS))
            kind = ("run", unit.variant.hash) if _shows_use(result) else None
            self._spending.count(result.tokens, result.cost, kind)
            if is_fatal(error):
                self._work.stop(error)
                return
            self._kept += 1
            self._failed += error is not None
            kept = UnwrittenResult(unit, result.trace_id, result, unit.row)
            self._writer.put(kept)
            await self._score(kept, result)

    async def _score_stored(self, workers: int) -> None:
        units = {unit.row: unit for unit in self._units if unit.row is not None}
        rows = list(units)

        async def score(stored: tuple[int, str, CaseResult]) -> None:
            number, _, result = stored
            async with self._paid(units[number]) as may_ask:
                if may_ask:
                    kept = UnwrittenResult(units[number], result.trace_id, None, number)
                    await self._score(kept, result)

        for start in range(0, len(rows), _AT_ONCE):
            found = await run_sync(self._read, rows[start : start + _AT_ONCE])
            await self._work.do(found, score, workers, lambda one: self._is_known(units[one[0]]))

    def _read(self, rows: Sequence[int]) -> list[tuple[int, str, CaseResult]]:
        return list(read_results(self._path, self._row, rows))

    async def _score(self, kept: UnwrittenResult, result: CaseResult) -> None:
        used: dict[str, UsageMetrics] = {}
        try:
            kept.scores = await scores_of(
                result.finished(kept.unit.case),
                kept.unit.evaluators,
                self._runner.metadata_of(kept.unit),
                self._runner.prices,
                used,
                records_contents=not result.is_withheld,
            )
        finally:
            for name, figures in used.items():
                if figures.tokens:
                    self._writer.spend(kept.unit.variant.hash, name, figures)
        scored = {
            one.evaluator for one in kept.scores if one.score is not None and one.score.value is not None
        }
        for name, figures in used.items():
            # Without tokens and a score, it may have failed before it called a model.
            kind = ("evaluator", name) if figures.tokens or name in scored else None
            self._spending.count(figures.tokens, figures.cost, kind)
        self._writer.put(kept)
        self._done += 1
        self._report()

    def _is_known(self, unit: MissingRun) -> bool:
        return self._spending.knows(_kinds(unit, judges_only=True))

    def _paid(self, unit: MissingRun) -> AbstractAsyncContextManager[bool]:
        return self._work.paid(lambda: self._estimate(unit), lambda: self._used_up(unit))

    def _estimate(self, unit: MissingRun) -> Amounts:
        estimate = self._spending.estimate(_kinds(unit))
        is_free = unit.row is not None and not estimate["tokens"]
        # Code costs nothing, so it runs even without any budget left.
        return {} if is_free and all(one.source != "model" for one in unit.evaluators) else estimate

    def _used_up(self, unit: MissingRun) -> EvaluationBudgetError:
        limits = self._spending.limits
        shown = " and ".join(f"{name} {value:,}" for name, value in limits.items())
        if "cost" in limits and self._spending.cost is None:
            reason = f"the limit is {shown}, and a model that was asked has no price; name it in the prices"
            return EvaluationBudgetError(reason=reason)
        next_one = self._spending.estimate(_kinds(unit))["tokens"]
        what = "one run takes" if unit.row is None else "the judges of one result take"
        kept = "are kept" if unit.row is None else "are kept, some of them without all scores"
        reason = (
            f"the limit is {shown}; {self._spending.tokens:,} tokens were used in all starts, and {what} up "
            f"to {next_one:,.0f}. {self._kept} of {self._total} runs {kept}; start it again with a higher "
            "limit, and it goes on"
        )
        return EvaluationBudgetError(reason=reason)

    def _report(self) -> None:
        if self._progress is None:
            return
        spending = self._spending
        try:
            self._progress(Progress(self._done, self._total, self._failed, spending.tokens, spending.cost))
        except Exception as error:  # noqa: BLE001 - as of an observer: it must not break the evaluation
            _log.error("progress callback failed", evaluation=self._row.name, error=repr(error))


def _kinds(unit: MissingRun, *, judges_only: bool = False) -> list[Hashable]:
    found: list[Hashable] = [
        ("evaluator", one.name) for one in unit.evaluators if not judges_only or one.source == "model"
    ]
    return [*found, ("run", unit.variant.hash)] if unit.row is None else found


def _shows_use(result: CaseResult) -> bool:
    """Return whether it called a model before it failed."""
    return result.status != "failed" or result.tokens > 0


def _first_of(error: BaseException) -> BaseException:
    """Return the first error in an exception group of tasks."""
    while isinstance(inner := getattr(error, "exceptions", None), tuple) and inner:
        error = inner[0]
    return error
