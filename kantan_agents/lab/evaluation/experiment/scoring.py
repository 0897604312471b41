"""Asks evaluators about a finished run, and records their scores in its trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import anyio
import attrs
from agents import CustomSpanData
from agents.tracing import get_trace_provider

from kantan_agents.lab.evaluation.evaluators.evaluator import Evaluator
from kantan_agents.lab.evaluation.evaluators.judge_runs import judging
from kantan_agents.lab.evaluation.experiment.rows import RatedScore
from kantan_agents.lab.evaluation.finished_case import FinishedCase
from kantan_agents.lab.evaluation.scores import Score
from kantan_agents.lab.experiment.prices import Figures, Prices
from kantan_agents.lab.experiment.watching import watched
from kantan_agents.models.rubric import judge
from kantan_agents.traces.capture.canonical import copied
from kantan_agents.traces.metadata import JUDGE_SPAN


async def scores_of(
    finished: FinishedCase,
    evaluators: Sequence[Evaluator],
    metadata: Mapping[str, Any],
    prices: Prices,
    *,
    records_contents: bool,
) -> tuple[list[RatedScore], dict[str, Figures]]:
    """Return the scores that evaluators give to a run, asked at the same time, and what each has used.

    Args:
        finished: The run.
        evaluators: The evaluators.
        metadata: For the traces of judges.
        prices: Prices of models.
        records_contents: Whether these traces may have the contents of the run.
    """
    with judging(metadata, records_contents=records_contents):
        given, used = await _asked(finished, evaluators, prices)
    rated: list[RatedScore] = []
    for one in evaluators:
        scores = given.get(one.name, {})
        rated += (RatedScore(metric, score, "", one.name, one.version) for metric, score in scores.items())
        if not scores:
            rated.append(RatedScore.not_applicable(one.name, one.version))
        if one.better == "higher":
            _record(finished.trace_id, scores, records_contents=records_contents)
    return (rated if records_contents else [_without_texts(one) for one in rated]), used


def _own(finished: FinishedCase) -> FinishedCase:
    """Return a run for one evaluator, which may change what it gets: others get copies of their own."""
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
    """Return a score without its texts, which may quote the run."""
    if rated.score is None:
        return rated
    error = None if rated.score.error is None else rated.score.error.partition(":")[0]
    return attrs.evolve(rated, score=attrs.evolve(rated.score, label=None, comment=None, error=error))


async def _asked(
    finished: FinishedCase, evaluators: Sequence[Evaluator], prices: Prices
) -> tuple[dict[str, Mapping[str, Score]], dict[str, Figures]]:
    found: dict[str, Mapping[str, Score]] = {}
    used: dict[str, Figures] = {}

    async def ask(evaluator: Evaluator) -> None:
        with watched(prices) as watch:
            found[evaluator.name] = await evaluator.score(_own(finished))
        used[evaluator.name] = watch.used

    asked = [one for one in evaluators if finished.error is None or one.on_failure]
    if len(asked) == 1:
        await ask(asked[0])
    else:
        async with anyio.create_task_group() as group:
            for evaluator in asked:
                group.start_soon(ask, evaluator)
    return found, used


def _record(trace_id: str | None, scores: Mapping[str, Score], *, records_contents: bool) -> None:
    """Record scores of code as verdicts in the trace of the run; those of models are in the judges' traces.

    kantan-llm finds them below a threshold, so only those from 0 to 1 are meant.
    """
    if trace_id is None:
        return
    provider = get_trace_provider()
    trace = None
    for metric, score in scores.items():
        if score.value is None or score.source != "code" or not 0 <= score.value <= 1:
            continue
        if trace is None:  # it is not started, so that it is not recorded again
            trace = provider.create_trace("evaluation", trace_id=trace_id)
        text = "" if not records_contents else score.comment or score.label or ""
        comment = f"{metric}: {text}".rstrip(": ")
        verdict = judge(score.value, [comment])
        verdict["rubric"]["comment"] = comment
        with provider.create_span(CustomSpanData(JUDGE_SPAN, verdict), parent=trace):
            pass
