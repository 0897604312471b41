"""Measures a judge on results that also have human labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

import attrs

from kantan_agents.lab.evaluation.evaluators.pairwise import PairwiseVerdict
from kantan_agents.lab.evaluation.experiment.results import CaseResult
from kantan_agents.lab.evaluation.labels.measure import Measure, counted
from kantan_agents.lab.evaluation.statistics import Rate, drift, judge_rates, length_bias, position_bias

_POSITIVE: Final = "true positive rate"
_NEGATIVE: Final = "true negative rate"
_LENGTH: Final = "length"
_DRIFT: Final = "drift"
_POSITION: Final = "position"
_FEWEST: Final = 10
_FEWEST_OF_A_CLASS: Final = 5
_LONGER: Final = {
    "up": "longer outputs get better scores from it than from people",
    "down": "longer outputs get worse scores from it than from people",
    "none": "no sign that length matters to it",
    "unknown": "the lengths, or the differences between judge and people, are all the same",
}
_LATER: Final = {
    "up": "it has become more generous",
    "down": "it has become stricter",
    "none": "no sign that it has changed",
    "unknown": "the times, or the differences between judge and people, are all the same",
}


@attrs.frozen
class Both:
    """A result with a score of the judge and a label; results with the same ``unit`` are not independent."""

    score: float
    label: float
    length: int
    time: datetime | None
    unit: str
    case: str


def rates_of(both: Sequence[Both], threshold: float) -> tuple[Measure, Measure]:
    """Return the true positive and the true negative rate."""
    judge = [one.score >= threshold for one in both]
    person = [one.label >= threshold for one in both]
    reason = _few(both) or _other_scale(both)  # a common threshold needs a common scale
    if reason is None and len({one.score for one in both}) == 1:
        reason = f"the judge has given all {len(both):,} results the same score, {both[0].score:g}"
    if reason is not None:
        return Measure.unknown(_POSITIVE, len(both), reason), Measure.unknown(_NEGATIVE, len(both), reason)
    found = judge_rates(judge, person, [one.unit for one in both])
    return (_rate(_POSITIVE, found.true_positive, "passed"), _rate(_NEGATIVE, found.true_negative, "failed"))


def _rate(name: str, rate: Rate, verb: str) -> Measure:
    if rate.units >= _FEWEST_OF_A_CLASS:
        return Measure.of_rate(name, rate, f"it {verb} {{agreed}} of {{results}} that people {verb}")
    units = f" of {counted(rate.units, 'independent case')}" if rate.units < rate.cases else ""
    takes = f"{_FEWEST_OF_A_CLASS} independent cases" if units else str(_FEWEST_OF_A_CLASS)
    reason = f"people {verb} {counted(rate.cases, 'result')}{units}, and it takes at least {takes}"
    return Measure.unknown(name, rate.cases, reason)


def _few(both: Sequence[Both]) -> str | None:
    if len(both) >= _FEWEST:
        return None
    have = "has" if len(both) == 1 else "have"
    return f"{counted(len(both), 'result')} {have} a score and a label, and it takes at least {_FEWEST}"


def length_bias_of(both: Sequence[Both]) -> Measure:
    """Return the trend of the judge's error with the length of the output."""
    reason = _few(both) or _other_scale(both)
    if reason is not None:
        return Measure.unknown(_LENGTH, len(both), reason)
    trend = length_bias(*_columns(both), [one.length for one in both], *_clusters(both))
    return Measure.of_trend(_LENGTH, trend, _LONGER)


def drift_of(both: Sequence[Both]) -> Measure:
    """Return the trend of the judge's error over time."""
    timed = [one for one in both if one.time is not None]
    reason = _few(timed) or _other_scale(timed)
    if reason is not None:
        return Measure.unknown(_DRIFT, len(timed), reason)
    times = [one.time.timestamp() for one in timed if one.time is not None]
    trend = drift(*_columns(timed), times, *_clusters(timed))
    return Measure.of_trend(_DRIFT, trend, _LATER)


def _columns(both: Sequence[Both]) -> tuple[list[float], list[float]]:
    return [one.score for one in both], [one.label for one in both]


def _clusters(both: Sequence[Both]) -> tuple[list[str], list[str]]:
    return [one.unit for one in both], [one.case for one in both]


def _other_scale(both: Sequence[Both]) -> str | None:
    """Labels are stored from 0 to 1."""
    outside = [one.score for one in both if not 0 <= one.score <= 1]
    return (
        f"the labels are from 0 to 1, and the judge gives scores such as {outside[0]:g}" if outside else None
    )


Verdict = tuple[PairwiseVerdict, str | None]
"""A verdict, and the conversation or case of its result."""


def stored_verdicts(results: Iterable[CaseResult], metric: str) -> list[Verdict]:
    """Return the verdicts of a pairwise judge behind scores, if any."""
    scores = [(one.scores[metric], one.unit) for one in results if metric in one.scores]
    given = [(PairwiseVerdict.from_label(one.label), unit) for one, unit in scores if one.value is not None]
    found: list[Verdict] = [(one, unit) for one, unit in given if one is not None]
    return found if len(found) == len(given) else []


def position_of(verdicts: Sequence[Verdict]) -> Measure:
    """Return the position bias of a pairwise judge."""
    places: Mapping[str, int] = {"a": 1, "b": -1, "tie": 0}
    asked = [(*one.answers, unit) for one, unit in verdicts if len(one.answers) == 2]  # noqa: PLR2004 - both orders
    if not asked:
        return Measure.unknown(_POSITION, 0, "no verdicts of a pairwise judge were given")
    ones, others, units = zip(*asked, strict=True)
    # In the second order, the judge saw b first.
    found = position_bias([places[one] for one in ones], [-places[other] for other in others], units)
    return Measure.of_position(_POSITION, found)
