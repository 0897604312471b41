"""``Rater``: runs a version on recorded runs, and has a judge score the answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from kantan_agents.core.prompt import Prompt, hash_text
from kantan_agents.errors import JudgeFailedError, ReplayBudgetError, WorkingFolderError
from kantan_agents.lab.evaluation import Case, ToolUse
from kantan_agents.lab.evaluation.evaluators.judge_runs import traced_judges
from kantan_agents.lab.experiment.prices import UsageMetrics
from kantan_agents.lab.experiment.watching import watched
from kantan_agents.lab.experiment.work import Work
from kantan_agents.lab.improve.arguments import ImproveArguments
from kantan_agents.lab.improve.budget import BudgetUsedUpError, SearchSpending
from kantan_agents.lab.improve.journal import SearchJournal
from kantan_agents.lab.improve.parts import Parts, RecordedSource
from kantan_agents.lab.improve.rated import Rated, feedback_of, recorded_run, repeated_run, result_of
from kantan_agents.lab.improve.target import ImproveTarget
from kantan_agents.lab.replay import Change, Cohort, RunOutcome, replay_cohort_async
from kantan_agents.support.secrets import mask
from kantan_agents.traces.store.experiment_keys import EXPERIMENT_KEY

RECORDED: Final = "recorded"
"""The journal's version for the recorded runs."""
_JUDGE: Final = "judge"
_ATTEMPTS: Final = 3
_OF_ANSWERS: Final = re.compile(
    r"(InvalidScore|ModelBehaviorError|ModelRefusalError|MaxTurnsExceeded):"
    r"|\w+: \[kantan-agents\]\[E(40|205|206)\]"
)
"""Errors of one score; others would recur for each run."""


@attrs.frozen
class Rater:
    """Scores versions of the prompt, and pays for each score once."""

    _asked: ImproveArguments
    _target: ImproveTarget
    _parts: Parts
    _journal: SearchJournal
    _spending: SearchSpending
    _done: Callable[[], None]

    async def rate_recorded(self, cases: Sequence[Case]) -> list[Rated]:
        """Return the scores of the recorded answers."""
        missing = self._missing(RECORDED, cases)
        sources = [self._parts.sources[case.id] for case in missing]
        await self._judge_all(RECORDED, [(one, *recorded_run(one)) for one in sources])
        return [self._journal.rated[RECORDED, case.id] for case in cases]

    async def rate(self, text: str, cases: Sequence[Case]) -> list[Rated]:
        """Run a version on recorded runs, and return the scores in their order.

        Finished results are stored even if it fails.
        """
        version = hash_text(text)
        missing = self._missing(version, cases)
        if missing:
            outcomes = await self._replay(text, missing)
            sources = [self._parts.sources[case.id] for case in missing]
            await self._judge_all(
                version, [(one, *repeated_run(one, outcomes[one.case.id])) for one in sources]
            )
        return [self._journal.rated[version, case.id] for case in cases]

    def _missing(self, version: str, cases: Sequence[Case]) -> list[Case]:
        """Return the cases without a score, each once: GEPA repeats cases to fill up a sample."""
        by_id = {case.id: case for case in cases}
        return [case for case_id, case in by_id.items() if (version, case_id) not in self._journal.rated]

    async def _replay(self, text: str, cases: Sequence[Case]) -> Mapping[str, RunOutcome]:
        sources = [self._parts.sources[case.id] for case in cases]
        cohort = Cohort(self._asked.store, tuple(dict.fromkeys(one.trace_id for one in sources)))
        old = self._target.old
        version = old.version if text == old.text else f"candidate-{hash_text(text)[:8]}"
        prompt = Prompt(old.name, version, text, strict=old.strict, literal=old.literal)
        options = self._asked.runs
        with watched(options.priced) as watch:
            try:
                experiment = await replay_cohort_async(
                    cohort,
                    self._target.agent_with_another_text(text),
                    Change.prompt(prompt),
                    live=options.live,
                    concurrency=options.concurrency,
                    prices=options.prices,
                    context=options.context,
                    run_config=options.run_config,
                    name=experiment_name(prompt),
                    **self._spending.left_for_runs,
                )
            except ReplayBudgetError as error:
                raise BudgetUsedUpError from error
        outcomes = {run.run_id: run for run in experiment.runs}
        if experiment.stopped is not None:
            await self._keep_lost(watch.used, experiment.spent.tokens)
            if isinstance(experiment.stopped, ReplayBudgetError):
                raise BudgetUsedUpError from experiment.stopped
            raise experiment.stopped
        for case in cases:
            if case.id not in outcomes:
                reason = (
                    f"the recorded run {case.id} of this search is not in {self._asked.store.path} any more"
                )
                raise WorkingFolderError(path=str(self._journal.path), reason=f"{reason}; begin a new one")
            self._spending.count(outcomes[case.id].after.tokens, outcomes[case.id].after.cost)
        return outcomes

    async def _keep_lost(self, used: UsageMetrics, kept: int) -> None:
        """Store the usage of runs without a result; the others used ``kept`` tokens."""
        self._spending.count(used.tokens, used.cost)
        lost = used.tokens - kept
        if lost > 0:
            cost = None if used.cost is None else used.cost * lost / used.tokens
            await self._journal.add_lost(lost, cost)

    async def _judge_all(
        self, version: str, runs: Sequence[tuple[RecordedSource, Rated, tuple[ToolUse, ...]]]
    ) -> None:
        """Judge all runs and store the scores, then raise the first error."""
        work = Work(self._spending)

        async def ask(run: tuple[RecordedSource, Rated, tuple[ToolUse, ...]]) -> None:
            try:
                await self._judge_one(version, *run)
            except Exception as error:  # noqa: BLE001 - raised below
                work.stop(error)

        # While its usage is unknown, it is called once alone.
        kinds = [_JUDGE] if self._asked.judge.source == "model" else []
        await work.do(runs, ask, self._asked.runs.concurrency, lambda _: self._spending.knows(kinds))
        if work.stopped is not None:
            raise work.stopped

    async def _judge_one(
        self, version: str, source: RecordedSource, rated: Rated, tool_calls: tuple[ToolUse, ...]
    ) -> None:
        # A denied call must not be made, however good the answer is.
        if rated.error is None and not rated.refused:
            rated = await self._scored(source, version, rated, tool_calls)
        rated = attrs.evolve(rated, feedback=feedback_of(rated, self._asked.search.perfect))
        await self._journal.add_rated(version, rated)
        if rated.unscored is not None and self._journal.lacks_scores:
            reason = (
                f"{rated.unscored}; more than half of the runs have no score. Choose another judge, or set "
                "perfect (--perfect) to its best score"
            )
            raise JudgeFailedError(judge=self._asked.judge.name, run=source.case.id, reason=reason)
        self._done()

    async def _scored(
        self, source: RecordedSource, version: str, rated: Rated, tool_calls: tuple[ToolUse, ...]
    ) -> Rated:
        finished = result_of(rated, source.case, version, tool_calls).finished(source.case)
        if version == RECORDED:  # the judge sees the usage, although it is not paid for again
            finished = attrs.evolve(finished, **attrs.asdict(source.used))
        metadata = {EXPERIMENT_KEY: experiment_name(self._target.old)}
        used, problem, error = UsageMetrics(cost=self._asked.runs.priced.nothing), "", None
        with traced_judges(metadata, records_contents=not self._journal.withholds):
            for _ in range(_ATTEMPTS):
                with self._spending.reserved(_JUDGE), watched(self._asked.runs.priced) as watch:
                    scores = await self._asked.judge.score(finished)
                    self._spending.count(watch.used.tokens, watch.used.cost, _JUDGE)
                used += watch.used
                score = scores.get(self._asked.judge.name)
                rated = attrs.evolve(rated, judge_tokens=used.tokens, judge_cost=used.cost)
                if score is not None and score.value is not None:
                    comment = None if score.comment is None else mask(score.comment)
                    return attrs.evolve(rated, value=score.value, comment=comment)
                error = None if score is None or score.error is None else mask(score.error)
                problem = _why_no_score(scores, self._asked.judge.name)
        if error is not None and _OF_ANSWERS.match(error):
            return attrs.evolve(rated, unscored=error)
        await self._journal.add_lost(used.tokens, used.cost)
        raise JudgeFailedError(judge=self._asked.judge.name, run=source.case.id, reason=problem)


def experiment_name(prompt: Prompt) -> str:
    """Return the name of the experiment with the runs of a version."""
    return f"improve {prompt.name} {prompt.version}"


def _why_no_score(scores: Mapping[str, Any], name: str) -> str:
    failed = next((one.error for one in scores.values() if one.error is not None), None)
    if failed is not None:
        return f"{mask(failed)}; the same command goes on with this run"
    if scores:
        return f"it gives {', '.join(sorted(scores))} and not {name}; choose a judge with one score"
    return "it does not apply to it; choose a judge that scores every run"
