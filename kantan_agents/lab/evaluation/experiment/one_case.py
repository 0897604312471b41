"""Runs a variant on a case, and evaluates the run."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Final

import anyio
import attrs
from agents import CustomSpanData, RunConfig
from agents.tracing import get_trace_provider

from kantan_agents.agent.running.drive import drive
from kantan_agents.agent.running.identity import begun_inside
from kantan_agents.agent.running.new import new_run
from kantan_agents.core.pipeline import Run
from kantan_agents.lab.evaluation.dataset.case import NESTED
from kantan_agents.lab.evaluation.evaluators.evaluator import Evaluator
from kantan_agents.lab.evaluation.evaluators.judge_runs import traced_judges
from kantan_agents.lab.evaluation.experiment.plan import MissingRun
from kantan_agents.lab.evaluation.experiment.results import CaseResult
from kantan_agents.lab.evaluation.experiment.rows import RatedScore
from kantan_agents.lab.evaluation.finished_case import FinishedCase
from kantan_agents.lab.evaluation.scores import Score
from kantan_agents.lab.experiment.prices import Prices, UsageMetrics
from kantan_agents.lab.experiment.watching import Watch, watched
from kantan_agents.lab.replay.playback import output_of
from kantan_agents.lab.replay.run_again import RecordedSession
from kantan_agents.models.rubric import judge
from kantan_agents.support.secrets import mask
from kantan_agents.traces.capture.canonical import copied
from kantan_agents.traces.metadata import JUDGE_SPAN
from kantan_agents.traces.store.experiment_keys import EXPERIMENT_KEY

CASE_KEY: Final = "kantan_agents_case"
VARIANT_KEY: Final = "kantan_agents_variant"
REPEAT_KEY: Final = "kantan_agents_repeat"
_WAITS: Final = "it waits for an approval, and nobody is asked in an evaluation"


@attrs.frozen
class CaseRunner:
    """Runs variants on cases. Cases override ``context``; ``withholds`` stores results without content."""

    evaluation: str
    prices: Prices
    config: RunConfig
    context: Mapping[str, Any]
    options: Mapping[str, Any]
    withholds: bool

    async def run(
        self, unit: MissingRun, spend: Callable[[UsageMetrics], None]
    ) -> tuple[CaseResult, Exception | None]:
        """Return the result, and the error; ``spend`` gets usage even on cancellation."""
        context = {**_copies(self.context), **copied(dict(unit.case.context))}
        given = unit.case.input if isinstance(unit.case.input, str) else copied(list(unit.case.input))
        config = copy.copy(self.config)  # `replace` would read all type hints of the class
        config.trace_metadata = {**(config.trace_metadata or {}), **self.metadata_of(unit)}
        options = {**self.options, "run_config": config}
        if unit.case.earlier:
            options["session"] = RecordedSession(copied(list(unit.case.earlier)))
        output: Any = None
        error: Exception | None = None
        run: Run | None = None
        start = time.perf_counter()
        is_nested = unit.case.metadata.get(NESTED)
        with watched(self.prices) as watch, begun_inside() if is_nested else nullcontext():
            try:
                # As `run_async` does, but with access to the run and its trace afterwards.
                run, pipeline = new_run(unit.variant.agent, given, context, options)
                output = output_of(await drive(run, pipeline))
            except Exception as raised:  # noqa: BLE001 - any error of the run is its result
                error = raised
            finally:
                spend(watch.used)
        seconds = time.perf_counter() - start
        return self._result(unit, run, watch, output, error, seconds), error

    def metadata_of(self, unit: MissingRun) -> dict[str, Any]:
        """Return the metadata of a run and of its judges' runs."""
        return {
            EXPERIMENT_KEY: self.evaluation,
            CASE_KEY: unit.case.id,
            VARIANT_KEY: unit.variant.name,
            REPEAT_KEY: unit.repeat,
        }

    def _result(
        self,
        unit: MissingRun,
        run: Run | None,
        watch: Watch,
        output: Any,
        error: Exception | None,
        seconds: float,
    ) -> CaseResult:
        message = None if error is None else mask(f"{type(error).__name__}: {error}".rstrip(": "))
        if error is None and run is not None and getattr(run.result, "interruptions", None):
            output, message = None, _WAITS
        trace_id = None if run is None else run.trace_id
        return CaseResult(
            unit.case.id,
            unit.case.hash,
            unit.case.conversation,
            unit.variant.name,
            unit.repeat,
            "finished" if message is None else "failed",
            output,
            message,
            trace_id,
            seconds,
            watch.used.input_tokens,
            watch.used.output_tokens,
            watch.used.cost,
            watch.used.model_calls,
            watch.tool_calls,
            is_withheld=self.withholds or trace_id is None,
        )


def _copies(context: Mapping[str, Any]) -> dict[str, Any]:
    """Copy what can be copied, so that runs do not change each other's values."""
    return {key: _copy(value) for key, value in context.items()}


def _copy(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001 - a connection, for example, is what all runs share
        return value


async def scores_of(
    finished: FinishedCase,
    evaluators: Sequence[Evaluator],
    metadata: Mapping[str, Any],
    prices: Prices,
    used: dict[str, UsageMetrics],
    *,
    records_contents: bool,
) -> list[RatedScore]:
    """Return the scores of concurrent evaluators; ``used`` gets their usage, even on cancellation."""
    with traced_judges(metadata, records_contents=records_contents):
        given = await _asked(finished, evaluators, prices, used)
    rated: list[RatedScore] = []
    for one in evaluators:
        scores = given.get(one.name, {})
        rated += (RatedScore(metric, score, "", one.name, one.version) for metric, score in scores.items())
        if not scores:
            rated.append(RatedScore.not_applicable(one.name, one.version))
        if one.better == "higher":
            _record(finished.trace_id, scores, records_contents=records_contents)
    return rated if records_contents else [_without_texts(one) for one in rated]


def _own(finished: FinishedCase) -> FinishedCase:
    """Copy a run, because an evaluator may change it."""
    case = finished.case
    may_change = (finished.output, case.expected, case.input)
    if not (
        case.context
        or case.metadata
        or case.earlier
        or any(isinstance(one, (dict, list)) for one in may_change)
    ):
        return finished
    own = attrs.evolve(
        case,
        input=copied(case.input),
        context=copied(dict(case.context)),
        expected=copied(case.expected),
        metadata=copied(dict(case.metadata)),
        earlier=copied(list(case.earlier)),
    )
    return attrs.evolve(finished, case=own, output=copied(finished.output))


def _without_texts(rated: RatedScore) -> RatedScore:
    """The strings may quote the run."""
    if rated.score is None:
        return rated
    error = None if rated.score.error is None else rated.score.error.partition(":")[0]
    return attrs.evolve(rated, score=attrs.evolve(rated.score, label=None, comment=None, error=error))


async def _asked(
    finished: FinishedCase, evaluators: Sequence[Evaluator], prices: Prices, used: dict[str, UsageMetrics]
) -> dict[str, Mapping[str, Score]]:
    found: dict[str, Mapping[str, Score]] = {}

    async def ask(evaluator: Evaluator) -> None:
        with watched(prices) as watch:
            try:
                found[evaluator.name] = await evaluator.score(_own(finished))
            finally:
                used[evaluator.name] = watch.used

    asked = [one for one in evaluators if finished.error is None or one.on_failure]
    if len(asked) == 1:
        await ask(asked[0])
    else:
        async with anyio.create_task_group() as group:
            for evaluator in asked:
                group.start_soon(ask, evaluator)
    return found


def _record(trace_id: str | None, scores: Mapping[str, Score], *, records_contents: bool) -> None:
    """Record scores of code in the trace of the run; scores of models are in the judges' traces.

    kantan-llm's threshold for verdicts only makes sense from 0 to 1.
    """
    if trace_id is None:
        return
    provider = get_trace_provider()
    trace = None
    for metric, score in scores.items():
        if score.value is None or score.source != "code" or not 0 <= score.value <= 1:
            continue
        if trace is None:  # not started, so that it is not recorded again
            trace = provider.create_trace("evaluation", trace_id=trace_id)
        text = "" if not records_contents else score.comment or score.label or ""
        comment = f"{metric}: {text}".rstrip(": ")
        verdict = judge(score.value, [comment])
        verdict["rubric"]["comment"] = comment
        with provider.create_span(CustomSpanData(JUDGE_SPAN, verdict), parent=trace):
            pass
