"""Judged cases, some with labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Final

import attrs

from kantan_agents.lab.evaluation.comparing.paired_values import CaseKey, runs_of_cases
from kantan_agents.lab.evaluation.experiment.results import CaseResult, VariantResults
from kantan_agents.lab.evaluation.labels.label import Label, RatedResult, mean_value
from kantan_agents.lab.evaluation.statistics import CorrectedMean, corrected_mean

_TWO_SIDES: Final = 2


@attrs.frozen
class _Case:
    score: float
    label: float | None
    probability: float
    runs: int
    unit: str


@attrs.frozen
class JudgedUnits:
    """Judged and labeled cases. The cases of a conversation are not independent.

    ``labels`` is NaN unless all sides have one. ``probabilities`` are of sampling a label.
    """

    scores: Sequence[float]
    labels: Sequence[float]
    probabilities: Sequence[float]
    units: Sequence[str]
    bounds: tuple[float, float]

    @property
    def cases(self) -> int:
        """Number of judged cases."""
        return len(self.scores)

    @property
    def independent(self) -> int:
        """Number of independent judged cases."""
        return len(set(self.units))

    @property
    def labelled(self) -> int:
        """Number of cases with labels on all sides."""
        return sum(not math.isnan(label) for label in self.labels)

    @property
    def labelled_units(self) -> int:
        """Number of independent cases with labels."""
        known = zip(self.units, self.labels, strict=True)
        return len({unit for unit, label in known if not math.isnan(label)})

    @property
    def judge_mean(self) -> float:
        """The judge's uncorrected mean."""
        return fmean(self.scores)

    def corrected(self, level: float) -> CorrectedMean:
        """Return the estimated mean label of all cases."""
        given = (self.labels, self.scores, self.probabilities, self.units)
        return corrected_mean(*given, bounds=self.bounds, level=level)


def judged_units(
    sides: Sequence[VariantResults], metric: str, labels: Mapping[RatedResult, Sequence[Label]]
) -> JudgedUnits:
    """Return cases of one variant, or differences of two, repeats averaged."""
    cases = list(_cases(sides, metric, labels).values())
    return JudgedUnits(
        [one.score for one in cases],
        [math.nan if one.label is None else one.label for one in cases],
        # The conversation of any of its runs.
        [1.0 - (1.0 - one.probability) ** one.runs for one in cases],
        [one.unit for one in cases],
        (0.0, 1.0) if len(sides) == 1 else (-1.0, 1.0),
    )


@attrs.frozen
class _Side:
    score: float
    label: float | None
    probability: float
    runs: int


def _cases(
    sides: Sequence[VariantResults], metric: str, labels: Mapping[RatedResult, Sequence[Label]]
) -> dict[CaseKey, _Case]:
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
