"""How far a judge can be trusted, measured with human labels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation.evaluators.pairwise import PairwiseVerdict
from kantan_agents.lab.evaluation.experiment.evaluation import Evaluation
from kantan_agents.lab.evaluation.experiment.results import CaseResult
from kantan_agents.lab.evaluation.labels.arguments import checked_metric
from kantan_agents.lab.evaluation.labels.judge_measures import (
    Both,
    drift_of,
    length_bias_of,
    position_of,
    rates_of,
    stored_verdicts,
)
from kantan_agents.lab.evaluation.labels.label import given_by, labels_by_result, mean_value
from kantan_agents.lab.evaluation.labels.measure import Measure, counted
from kantan_agents.lab.evaluation.labels.rows import read_score_times
from kantan_agents.lab.evaluation.labels.stored_labels import labels_of
from kantan_agents.support.arguments import checked_number
from kantan_agents.support.nearest import nearest


@attrs.frozen
class JudgeQuality:
    """How far a judge can be trusted.

    Attributes:
        metric: The metric of the judge.
        people: The metric of the human labels.
        results: Number of results with a score of the judge and a label.
        picked: Number of these that were chosen, not sampled; they can distort all measures.
        threshold: Lowest value that passes, for the judge and for reviewers.
        true_positive: Share that the judge passed of the results that reviewers passed.
        true_negative: Share that the judge failed of the results that reviewers failed.
        length: Whether the judge's error depends on the length of the output: Spearman's correlation.
        drift: Whether the judge's error depends on the time of its score: Spearman's correlation.
        position: Whether a pairwise judge prefers a position: pairs in which it preferred the first, minus
            pairs in which it preferred the second, as a share of all.
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
        """All measures."""
        return (self.true_positive, self.true_negative, self.length, self.drift, self.position)

    @property
    def text(self) -> str:
        """All measures, one line each."""
        head = f"{self.metric}: {counted(self.results, 'result')} with a score and a label"
        if self.picked:
            head += f", {self.picked:,} of them picked by hand, which may mislead"
        return "\n".join([head, *(one.text for one in self.measures)])

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON data, with ``text``."""
        return {**attrs.asdict(self), "text": self.text}


def judge_quality(
    evaluation: Evaluation,
    metric: str,
    *,
    people: str | None = None,
    by: str | Iterable[str] | None = None,
    threshold: float = 0.5,
    verdicts: Iterable[PairwiseVerdict] = (),
) -> JudgeQuality:
    """Measure a judge, or any other evaluator, on results that also have human labels.

    The labels of several reviewers of a result are averaged. A measure that is unknown, such as the rates of
    a judge with only one score, has a reason instead of a value. Intervals and p-values allow for repeats,
    variants and conversations, which are not independent.

    Args:
        evaluation: The evaluation.
        metric: The metric of the judge.
        people: The metric of the labels, if it has another name.
        by: The name or names of the reviewers whose labels count; by default all.
        threshold: Lowest value that passes, 0 or more.
        verdicts: Independent verdicts of a pairwise judge, for its position bias, in addition to the stored
            scores of ``preferred``.

    Raises:
        InvalidOptionError: E75, no evaluator has given such a score, or an argument is invalid.
        TraceDatabaseError: E60, the database cannot be read.
    """
    judged, named = checked_metric(metric), checked_metric(metric if people is None else people, "people")
    passing = checked_number("threshold", threshold)
    check_judged(judged, evaluation.results)
    labels = labels_by_result(given_by(labels_of(evaluation, named), by))
    times = read_score_times(evaluation.path, evaluation.row, judged)
    both: list[Both] = []
    picked = 0
    for result in evaluation.results:
        given = labels.get((result.case_id, result.case_hash, result.variant, result.repeat))
        score = result.scores.get(judged)
        if given and score is not None and score.value is not None:
            variant = evaluation.hash_of(result.variant)
            time = times.get((result.case_id, result.case_hash, variant, result.repeat))
            both.append(
                Both(score.value, mean_value(given), _length(result), time, result.unit, result.case_hash)
            )
            picked += all(one.probability is None for one in given)
    positive, negative = rates_of(both, passing)
    return JudgeQuality(
        judged,
        named,
        len(both),
        picked,
        passing,
        positive,
        negative,
        length_bias_of(both),
        drift_of(both),
        position_of([*((one, None) for one in verdicts), *stored_verdicts(evaluation.results, judged)]),
    )


def check_judged(metric: str, results: Iterable[CaseResult]) -> None:
    """Check that evaluators have given scores of a metric."""
    known = list(dict.fromkeys(name for one in results for name in one.scores))
    if metric not in known:
        near = nearest(metric, known)
        there = f"there are {', '.join(known)}" if known else "there are no scores at all"
        hint = there if near is None else f"did you mean {near!r}?"
        raise InvalidOptionError(
            option="metric", reason=f"no evaluator has given scores of {metric!r}; {hint}"
        )


def _length(result: CaseResult) -> int:
    """Measure the output as its reader sees it."""
    return len(result.output) if isinstance(result.output, str) else len(str(result.output))
