"""``judge_quality``: how far a judge can be trusted, measured with people's labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import attrs

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation.evaluators.pairwise import PairwiseVerdict
from kantan_agents.lab.evaluation.experiment.evaluation import Evaluation
from kantan_agents.lab.evaluation.experiment.results import CaseResult
from kantan_agents.lab.evaluation.labels.arguments import checked_metric
from kantan_agents.lab.evaluation.labels.label import given_by, labels_by_result, mean_value
from kantan_agents.lab.evaluation.labels.measure import Measure, counted
from kantan_agents.lab.evaluation.labels.rows import read_score_times
from kantan_agents.lab.evaluation.labels.stored_labels import labels_of
from kantan_agents.lab.evaluation.statistics import drift, judge_rates, length_bias, position_bias
from kantan_agents.support.arguments import checked_number
from kantan_agents.support.nearest import nearest

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
class JudgeQuality:
    """How far a judge can be trusted.

    Attributes:
        metric: The metric of the judge.
        people: The metric of the people's labels.
        results: Number of results with a score of the judge and a label.
        picked: How many of these somebody has picked by hand; all figures may be wrong for them.
        threshold: From which value on a result has passed, for the judge and for people.
        true_positive: Of the results that people passed, the share that the judge passed.
        true_negative: Of the results that people failed, the share that the judge failed.
        length: Whether the judge's error depends on the length of the output: Spearman's correlation.
        drift: Whether the judge's error depends on when it was asked: Spearman's correlation.
        position: Whether a pairwise judge prefers a position: pairs in which it preferred the first, minus
            those in which it preferred the second, as a share of all.
    """

    metric: str
    people: str
    results: int
    picked: int
    threshold: float
    true_positive: Measure
    true_negative: Measure
    length: Measure
    drift: Measure
    position: Measure

    @property
    def measures(self) -> tuple[Measure, ...]:
        """All that was measured."""
        return (self.true_positive, self.true_negative, self.length, self.drift, self.position)

    @property
    def text(self) -> str:
        """All of it, one line for each measure."""
        head = f"{self.metric}: {counted(self.results, 'result')} with a score and a label"
        if self.picked:
            head += f", {self.picked:,} of them picked by hand, which may mislead"
        return "\n".join([head, *(one.text for one in self.measures)])

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON data, with the text."""
        return {**attrs.asdict(self), "text": self.text}


@attrs.frozen
class _Both:
    """A result with a score of the judge and a label."""

    score: float
    label: float
    length: int
    time: datetime | None


def judge_quality(
    evaluation: Evaluation,
    metric: str,
    *,
    people: str | None = None,
    by: str | Iterable[str] | None = None,
    threshold: float = 0.5,
    verdicts: Iterable[PairwiseVerdict] = (),
) -> JudgeQuality:
    """Measure a judge, or any other evaluator, with the results that people have labelled too.

    Where several people have labelled a result, the mean of their labels counts. What is not known, such as
    the rates of a judge that gives everything the same score, has a reason in place of a value.

    Args:
        evaluation: The evaluation.
        metric: The metric of the judge.
        people: The metric of the labels, if it has another name.
        by: Whose labels count: a name, or several; by default those of all.
        threshold: From which value on a result has passed, 0 or more.
        verdicts: What a pairwise judge has said, for its position bias, besides the stored scores of
            ``preferred``.

    Raises:
        InvalidOptionError: E75, no evaluator has given such a score, or an argument is invalid.
        TraceDatabaseError: E60, the database cannot be read.
    """
    judged, named = checked_metric(metric), checked_metric(metric if people is None else people, "people")
    passing = checked_number("threshold", threshold)
    check_judged(judged, evaluation.results)
    labels = labels_by_result(given_by(labels_of(evaluation, named), by))
    times = read_score_times(evaluation.path, evaluation.row, judged)
    both: list[_Both] = []
    picked = 0
    for result in evaluation.results:
        given = labels.get((result.case_id, result.case_hash, result.variant, result.repeat))
        score = result.scores.get(judged)
        if given and score is not None and score.value is not None:
            variant = evaluation.hash_of(result.variant)
            time = times.get((result.case_id, result.case_hash, variant, result.repeat))
            both.append(_Both(score.value, mean_value(given), _length(result), time))
            picked += all(one.probability is None for one in given)
    positive, negative = _rates(both, passing)
    return JudgeQuality(
        judged,
        named,
        len(both),
        picked,
        passing,
        positive,
        negative,
        _length_bias(both),
        _drift(both),
        _position([*verdicts, *_stored_verdicts(evaluation.results, judged)]),
    )


def check_judged(metric: str, results: Iterable[CaseResult]) -> None:
    """Check that evaluators have given scores of a metric.

    Raises:
        InvalidOptionError: E75, they have not.
    """
    known = list(dict.fromkeys(name for one in results for name in one.scores))
    if metric not in known:
        near = nearest(metric, known)
        there = f"there are {', '.join(known)}" if known else "there are no scores at all"
        hint = there if near is None else f"did you mean {near!r}?"
        raise InvalidOptionError(
            option="metric", reason=f"no evaluator has given scores of {metric!r}; {hint}"
        )


def _length(result: CaseResult) -> int:
    """Return the length of the output as its reader sees it."""
    return len(result.output) if isinstance(result.output, str) else len(str(result.output))


def _rates(both: Sequence[_Both], threshold: float) -> tuple[Measure, Measure]:
    judge = [one.score >= threshold for one in both]
    person = [one.label >= threshold for one in both]
    reason = _few(both)
    if reason is None and len({one.score for one in both}) == 1:
        reason = f"the judge has given all {len(both):,} results the same score, {both[0].score:g}"
    if reason is not None:
        return Measure.unknown(_POSITIVE, len(both), reason), Measure.unknown(_NEGATIVE, len(both), reason)
    found = judge_rates(judge, person)
    passed, failed = found.true_positive, found.true_negative
    return (
        Measure.unknown(_POSITIVE, passed.cases, _few_of_a_class("passed", passed.cases))
        if passed.cases < _FEWEST_OF_A_CLASS
        else Measure.of_rate(_POSITIVE, passed, "it passed {agreed} of {results} that people passed"),
        Measure.unknown(_NEGATIVE, failed.cases, _few_of_a_class("failed", failed.cases))
        if failed.cases < _FEWEST_OF_A_CLASS
        else Measure.of_rate(_NEGATIVE, failed, "it failed {agreed} of {results} that people failed"),
    )


def _few(both: Sequence[_Both]) -> str | None:
    if len(both) >= _FEWEST:
        return None
    have = "has" if len(both) == 1 else "have"
    return f"{counted(len(both), 'result')} {have} a score and a label, and it takes at least {_FEWEST}"


def _few_of_a_class(verb: str, count: int) -> str:
    return f"people {verb} {counted(count, 'result')}, and it takes at least {_FEWEST_OF_A_CLASS}"


def _length_bias(both: Sequence[_Both]) -> Measure:
    reason = _few(both) or _other_scale(both)
    if reason is not None:
        return Measure.unknown(_LENGTH, len(both), reason)
    lengths = [one.length for one in both]
    trend = length_bias([one.score for one in both], [one.label for one in both], lengths)
    return Measure.of_trend(_LENGTH, trend, _LONGER)


def _drift(both: Sequence[_Both]) -> Measure:
    timed = [one for one in both if one.time is not None]
    reason = _few(timed) or _other_scale(timed)
    if reason is not None:
        return Measure.unknown(_DRIFT, len(timed), reason)
    times = [one.time.timestamp() for one in timed if one.time is not None]
    trend = drift([one.score for one in timed], [one.label for one in timed], times)
    return Measure.of_trend(_DRIFT, trend, _LATER)


def _other_scale(both: Sequence[_Both]) -> str | None:
    """Return why scores and labels cannot be subtracted: labels are stored from 0 to 1."""
    outside = [one.score for one in both if not 0 <= one.score <= 1]
    return (
        f"the labels are from 0 to 1, and the judge gives scores such as {outside[0]:g}" if outside else None
    )


def _stored_verdicts(results: Iterable[CaseResult], metric: str) -> list[PairwiseVerdict]:
    """Return the verdicts of a pairwise judge behind scores; none if they are scores of another kind."""
    scores = [one.scores[metric] for one in results if metric in one.scores]
    given = [PairwiseVerdict.from_label(one.label) for one in scores if one.value is not None]
    found = [one for one in given if one is not None]
    return found if len(found) == len(given) else []


def _position(verdicts: Sequence[PairwiseVerdict]) -> Measure:
    places: Mapping[str, int] = {"a": 1, "b": -1, "tie": 0}
    asked = [one.answers for one in verdicts if len(one.answers) == 2]  # noqa: PLR2004 - both orders
    if not asked:
        return Measure.unknown(_POSITION, 0, "no verdicts of a pairwise judge were given")
    # In the second order, b is what the judge saw first.
    found = position_bias([places[one] for one, _ in asked], [-places[other] for _, other in asked])
    return Measure.of_position(_POSITION, found)
