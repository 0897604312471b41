"""Agreement of reviewers who labeled the same results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import attrs
import numpy as np

from kantan_agents.lab.evaluation.experiment.evaluation import Evaluation
from kantan_agents.lab.evaluation.labels.label import labels_by_result
from kantan_agents.lab.evaluation.labels.measure import counted
from kantan_agents.lab.evaluation.labels.stored_labels import labels_of
from kantan_agents.lab.evaluation.statistics import Agreement, cohens_kappa, is_binary, krippendorff_alpha

_FEWEST: Final = 10
_TWO: Final = 2


@attrs.frozen
class LabelAgreement:
    """How well reviewers agree beyond chance.

    Attributes:
        metric: The judged metric.
        people: Names of all reviewers who labeled it.
        statistic: ``"kappa"`` (Cohen's, for two reviewers and pass or fail) or ``"alpha"`` (Krippendorff's).
        value: 1 for perfect agreement, 0 for chance agreement; None if unknown.
        low: Lower bound of its 95 % interval; None if unknown, for example if all labels agree.
        high: Upper bound.
        results: Number of results with labels of at least two reviewers.
        reason: Why there is no value.
    """

    metric: str
    people: tuple[str, ...]
    statistic: Literal["kappa", "alpha"]
    value: float | None
    low: float | None
    high: float | None
    results: int
    reason: str | None = None

    @property
    def text(self) -> str:
        """The agreement in a few words."""
        if self.value is None:
            return f"agreement on {self.metric}: cannot tell, {self.reason}"
        bounds = "" if self.low is None or self.high is None else f"{self.low:.2g} to {self.high:.2g}, "
        some = "both" if len(self.people) == _TWO else f"two or more of {len(self.people)} people"
        who = f"{counted(self.results, 'result')} labelled by {some}"
        return f"agreement on {self.metric}: {self.statistic} {self.value:.2g} ({bounds}{who})"

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON data, with ``text``."""
        return {**attrs.asdict(self), "text": self.text}


def agreement(evaluation: Evaluation, metric: str) -> LabelAgreement:
    """Return how well the reviewers of an evaluation agree.

    It is Cohen's kappa for two reviewers whose labels are all yes or no, and otherwise Krippendorff's alpha:
    nominal for yes or no, interval for other values. Its interval allows for results of the same case or
    conversation.

    Args:
        evaluation: The evaluation.
        metric: The judged metric.

    Raises:
        TraceDatabaseError: E60, the database cannot be read.
    """
    labels = labels_of(evaluation, metric)
    unit_of = {(one.case_id, one.case_hash): one.unit for one in evaluation.results}
    people = tuple(sorted({one.by for one in labels}))
    by_result = labels_by_result(labels).items()
    given_by = [(key, {one.by: one.value for one in given}) for key, given in by_result]
    shared = [given for _, given in given_by if len(given) >= _TWO]
    units = [unit_of[key[:2]] for key, given in given_by if len(given) >= _TWO]
    nominal = is_binary([value for given in shared for value in given.values()])
    statistic: Literal["kappa", "alpha"] = "kappa" if len(people) == _TWO and nominal else "alpha"
    if len(shared) < _FEWEST:
        reason = _too_few(people, len(shared))
        return LabelAgreement(metric, people, statistic, None, None, None, len(shared), reason)
    found = _measured(shared, units, people, statistic, nominal=nominal)
    if found.value is None:
        reason = "all labels are the same"
        return LabelAgreement(metric, people, statistic, None, None, None, len(shared), reason)
    low, high = found.interval or (None, None)
    return LabelAgreement(metric, people, statistic, found.value, low, high, len(shared))


def _measured(
    shared: Sequence[Mapping[str, float]],
    units: Sequence[str],
    people: Sequence[str],
    statistic: str,
    *,
    nominal: bool,
) -> Agreement:
    if statistic == "kappa":
        first, second = people
        return cohens_kappa([given[first] for given in shared], [given[second] for given in shared], units)
    ratings = np.array([[given.get(name, np.nan) for given in shared] for name in people])
    return krippendorff_alpha(ratings, "nominal" if nominal else "interval", units)


def _too_few(people: Sequence[str], shared: int) -> str:
    if not people:
        return "nobody has labelled anything"
    if len(people) == 1:
        return f"only {people[0]} has labelled anything"
    by_two = f"{counted(shared, 'result')} {'is' if shared == 1 else 'are'} labelled by two people"
    return f"{by_two}, and it takes at least {_FEWEST}"
