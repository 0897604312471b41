"""``JudgedUnits``: the judged cases of one or two variants, with the labels that some of them have."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Final

import attrs
import numpy as np

from kantan_agents.lab.evaluation.comparing.paired_values import CaseKey, runs_of_cases
from kantan_agents.lab.evaluation.experiment.results import CaseResult, VariantResults
from kantan_agents.lab.evaluation.labels.label import Label, RatedResult, mean_value
from kantan_agents.lab.evaluation.statistics import CorrectedMean, corrected_mean
from kantan_agents.lab.evaluation.statistics.independent_units import Floats

_TWO_SIDES: Final = 2


@attrs.frozen
class _Case:
    """A judged case: its score and its label, or their differences between two variants."""

    score: float
    label: float | None
    probability: float
    runs: int
    unit: str


@attrs.frozen
class JudgedUnits:
    """What people's labels correct: cases, or conversations of several cases, which are not independent.

    Attributes:
        cases: Number of judged cases.
        labelled: Number of these with a label on all sides.
        scores: Shape (units,): the judge's mean of each unit, weighted so that their mean is that of cases.
        labels: Shape (units,): the people's mean, weighted likewise; NaN without a label.
        probabilities: Shape (units,): with which probability a label of the unit was drawn.
        bounds: The lowest and the highest possible mean: labels are stored from 0 to 1.
    """

    cases: int
    labelled: int
    scores: Sequence[float]
    labels: Sequence[float]
    probabilities: Sequence[float]
    bounds: tuple[float, float]

    @property
    def labelled_units(self) -> int:
        """Number of units with a label."""
        return sum(not math.isnan(label) for label in self.labels)

    @property
    def judge_mean(self) -> float:
        """What the judge alone says."""
        return math.fsum(self.scores) / len(self.scores)

    def corrected(self, level: float) -> CorrectedMean:
        """Return the mean that people would have given to all cases."""
        return corrected_mean(self.labels, self.scores, self.probabilities, bounds=self.bounds, level=level)


def judged_units(
    sides: Sequence[VariantResults], metric: str, labels: Mapping[RatedResult, Sequence[Label]]
) -> JudgedUnits:
    """Return the units of one variant, or of the differences between two.

    Repeats are averaged inside a case. A conversation of several cases is one unit, which counts by its size:
    its mean is taken relative to the mean of all cases, multiplied by its size as a share of the mean size
    (the linearised ratio, Cochran, Sampling Techniques, 3rd edition, 1977, section 6.4).

    Args:
        sides: The results of the variant, or of both; the difference is that of the second to the first.
        metric: The metric of the judge.
        labels: The labels of each result.
    """
    cases = _cases(sides, metric, labels)
    units: dict[str, list[_Case]] = {}
    for case in cases.values():
        units.setdefault(case.unit, []).append(case)
    sizes = np.array([len(members) for members in units.values()], dtype=np.float64)
    scores = np.array([fmean(one.score for one in members) for members in units.values()])
    given = [[one for one in members if one.label is not None] for members in units.values()]
    answers = np.array([fmean(one.label or 0.0 for one in some) if some else np.nan for some in given])
    chances = np.array([_probability(*pair) for pair in zip(units.values(), given, strict=True)])
    if len(units) < len(cases):
        has = ~np.isnan(answers)
        weights = sizes / sizes.mean()
        scores = _weighted(scores, weights, weights)
        answers[has] = _weighted(answers[has], weights[has], weights[has] / chances[has])
    labelled = sum(one.label is not None for one in cases.values())
    listed = (scores.tolist(), answers.tolist(), chances.tolist())
    return JudgedUnits(len(cases), labelled, *listed, (0.0, 1.0) if len(sides) == 1 else (-1.0, 1.0))


@attrs.frozen
class _Side:
    """The runs of a case with one variant."""

    score: float
    label: float | None
    probability: float
    runs: int


def _cases(
    sides: Sequence[VariantResults], metric: str, labels: Mapping[RatedResult, Sequence[Label]]
) -> dict[CaseKey, _Case]:
    """Return the cases that have a score on all sides."""
    runs = [runs_of_cases(side) for side in sides]
    found: dict[CaseKey, _Case] = {}
    for key, first in runs[0].items():
        known = [_side(of_side.get(key, []), metric, labels) for of_side in runs]
        here = [side for side in known if side is not None]
        if len(here) < len(sides):
            continue
        given = [side.label for side in here if side.label is not None]
        found[key] = _Case(
            _difference([side.score for side in here]),
            _difference(given) if len(given) == len(sides) else None,
            min(side.probability for side in here),
            max(side.runs for side in here),
            first[0].unit,
        )
    return found


def _side(
    runs: Sequence[CaseResult], metric: str, labels: Mapping[RatedResult, Sequence[Label]]
) -> _Side | None:
    finished = [run for run in runs if run.status == "finished"]
    scores = [run.scores[metric].value for run in finished if metric in run.scores]
    usable = [value for value in scores if value is not None and math.isfinite(value)]
    if not usable:
        return None
    keys = [(run.case_id, run.case_hash, run.variant, run.repeat) for run in finished]
    given = [labels[key] for key in keys if key in labels]
    if not given:
        return _Side(fmean(usable), None, 1.0, len(finished))
    chances = [max(one.probability or 1.0 for one in of_run) for of_run in given]
    return _Side(fmean(usable), fmean(map(mean_value, given)), fmean(chances), len(finished))


def _difference(values: Sequence[float]) -> float:
    return values[1] - values[0] if len(values) == _TWO_SIDES else values[0]


def _probability(members: Sequence[_Case], given: Sequence[_Case]) -> float:
    """Return with which probability any run of a unit was drawn."""
    if not given:
        return 1.0
    of_run = fmean(one.probability for one in given)
    return 1.0 - (1.0 - of_run) ** sum(one.runs for one in members)


def _weighted(values: Floats, weights: Floats, shares: Floats) -> Floats:
    """Return values weighted relative to their centre, which is the mean by ``shares``."""
    centre = float(shares @ values) / float(shares.sum()) if len(values) else 0.0
    result: Floats = centre + weights * (values - centre)
    return result
