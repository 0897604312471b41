"""The fraction of passing cases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal

import attrs

from kantan_agents.lab.evaluation.experiment.results import CaseResult
from kantan_agents.lab.evaluation.scores import Score
from kantan_agents.lab.evaluation.statistics import Interval, proportion
from kantan_agents.lab.evaluation.statistics.intervals import exact_bounds

Verdict = Literal["passed", "uncertain", "failed"]

_ROUNDING: Final = 1e-9
_MOST_CASES: Final = 100_000


@attrs.frozen
class PassRate:
    """The fraction of passing cases.

    A test fails if the rate is too low even at the upper bound of its 95 % interval, so an agent whose true
    rate is ``min_pass`` fails in at most 1 of 40 sessions. This needs Clopper and Pearson's interval, for the
    effective number of cases: with Wilson's, up to 1 of 5 sessions on a handful of cases would fail. If all
    cases must pass, one failing run is enough.

    A case that passes in one of two repeats is half a case; ``independent`` counts a conversation once.
    """

    passed: float
    cases: int
    independent: int
    effective: float
    min_pass: float

    @property
    def rate(self) -> float:
        """The fraction that passes."""
        return self.passed / self.cases

    @property
    def interval(self) -> Interval:
        """At a level of 95 %."""
        return self._interval(self.cases)

    @property
    def verdict(self) -> Verdict:
        """Enough, certainly too low, or too low possibly by chance."""
        if self.rate >= self.min_pass - _ROUNDING:
            return "passed"
        is_certain = self.min_pass == 1.0 or self.interval.high < self.min_pass
        return "failed" if is_certain else "uncertain"

    @property
    def more_cases(self) -> int | None:
        """With the same rate, they would make the test fail; None for more than 100,000."""
        low, high = self.cases, self.cases
        while self._interval(high).high >= self.min_pass:
            low, high = high, high * 2
            if high > _MOST_CASES:
                return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._interval(middle).high < self.min_pass else (middle, high)
        return high - self.cases

    def _interval(self, cases: int) -> Interval:
        worth = self.effective * cases / self.cases
        return exact_bounds(self.rate * worth, worth)

    @property
    def text(self) -> str:
        """Describe the rate."""
        low, high = self.interval
        passed = f"{self.passed:.10g} of {self.cases} cases pass"
        rate = f"{self.rate:.1%} (95% interval {low:.1%} to {high:.1%})"
        return f"{passed}: {rate}, and {self.min_pass:.1%} must"


def pass_rate(
    results: Sequence[CaseResult], *, min_pass: float, threshold: float, is_scored: bool
) -> PassRate | None:
    """Return the rate; None if no case has passed or failed.

    A case without a score is omitted: its evaluators have failed, or do not apply to it. Without evaluators,
    a run passes if it finishes.
    """
    by_case: dict[str, list[bool]] = {}
    units: dict[str, str] = {}
    for one in results:
        passed = passes(one, threshold, is_scored=is_scored)
        if passed is not None:
            by_case.setdefault(one.case_id, []).append(passed)
            units[one.case_id] = one.unit
    if not by_case:
        return None
    shares = [sum(runs) / len(runs) for runs in by_case.values()]
    found = proportion(shares, list(units.values()))
    return PassRate(math.fsum(shares), len(shares), found.units, found.effective, min_pass)


def passes(result: CaseResult, threshold: float, *, is_scored: bool) -> bool | None:
    """None if it is unknown."""
    if result.status == "failed":
        return False
    scores = result.scores.values()
    if any(shortfall(score, threshold) is not None for score in scores):
        return False
    if any(score.value is None for score in scores) or (is_scored and not scores):
        return None
    return True


def shortfall(score: Score, threshold: float) -> str | None:
    """Describe an insufficient score; a failed assertion in an evaluator is the score 0."""
    if is_failed_check(score):
        message = (score.error or "").partition(": ")[2].partition("\n")[0]
        return f"0, {message or 'an assertion has failed'}"
    if score.value is None or score.value >= threshold:
        return None
    return f"{score.value:.3g}" + (f", {score.comment}" if score.comment else "")


def is_failed_check(score: Score) -> bool:
    """Whether an assertion of the evaluator has failed."""
    return score.error is not None and score.error.partition(":")[0] == AssertionError.__name__
