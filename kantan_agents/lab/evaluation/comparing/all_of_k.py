"""The share of cases of which all k runs pass."""

from __future__ import annotations

import math
from typing import Any

import attrs

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation.comparing.paired_values import runs_of_cases
from kantan_agents.lab.evaluation.experiment.results import CaseResult, VariantResults
from kantan_agents.lab.evaluation.statistics import Interval, proportion
from kantan_agents.lab.evaluation.statistics.intervals import exact_bounds
from kantan_agents.support.arguments import checked_int, checked_number, shown


@attrs.frozen
class PassesAll:
    """How often all of k runs of a case pass.

    Attributes:
        variant: Name of the variant.
        metric: The metric.
        rates: Shares of cases of which 1, 2, ..., k runs all pass.
        cases: Number of cases.
        independent: Number of independent cases; the cases of a conversation count as one.
        effective: Number of independent cases that carry as much information; see ``proportion``.
    """

    variant: str
    metric: str
    rates: tuple[float, ...]
    cases: int
    independent: int
    effective: float

    @property
    def k(self) -> int:
        """Number of runs that must all pass."""
        return len(self.rates)

    @property
    def rate(self) -> float:
        """The share of cases of which all k runs pass."""
        return self.rates[-1]

    @property
    def interval(self) -> Interval:
        """The interval of that share at a level of 95 %; it allows for conversations, see ``proportion``."""
        return exact_bounds(self.rate * self.effective, self.effective)

    @property
    def text(self) -> str:
        """One sentence with the interval."""
        low, high = self.interval
        first = f", and 1 of 1 in {self.rates[0]:.1%}" if self.k > 1 else ""
        passes = f"{self.variant} passes {self.k} of {self.k} on {self.metric} in {self.rate:.1%}"
        return f"{passes} of {_counted(self.cases, 'case')} (95% interval {low:.1%} to {high:.1%}){first}"

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON data, with ``text``."""
        return {**attrs.asdict(self), "interval": [*self.interval], "text": self.text}


def passes_all(
    results: VariantResults, metric: str, k: int | None = None, *, threshold: float = 0.5
) -> PassesAll:
    """Return how often all of k runs of a case pass: the experience of a user who comes k times.

    An agent that passes 80 % of its runs passes four in a row in 41 % of the cases if chance decides, and in
    80 % if the case decides. For c passing runs of n, the share is C(c, k) / C(n, k), the unbiased estimate
    of pass^k of Yao et al. (2024), "tau-bench" (arXiv 2406.12045).

    A failed run or score does not pass. Runs and cases to which the metric does not apply are ignored.

    Args:
        results: Results of a variant, of an evaluation with ``repeats``.
        metric: The metric.
        k: Number of runs that must pass; by default the number of runs of each case.
        threshold: Lowest score that passes, 0 or more.

    Raises:
        InvalidOptionError: E75, no run has such a score, a case has fewer than k, or an argument is invalid.
    """
    if not isinstance(results, VariantResults):
        reason = f'must be the results of a variant, such as evaluation["v1"], not {shown(results)}'
        raise InvalidOptionError(option="results", reason=reason)
    passing = checked_number("threshold", threshold)
    counts: list[tuple[int, int]] = []
    units: list[str] = []
    for runs in runs_of_cases(results).values():
        passed = [one for one in (_passes(run, metric, passing) for run in runs) if one is not None]
        if any(metric in run.scores for run in runs) or all(run.status == "failed" for run in runs):
            counts.append((sum(passed), len(passed)))
            units.append(runs[0].unit)
    if metric not in results.metrics:
        known = ", ".join(results.metrics) or "no scores at all"
        raise InvalidOptionError(
            option="metric", reason=f"no run has a score of {metric!r}; there are {known}"
        )
    fewest = min(n for _, n in counts)
    wanted = fewest if k is None else checked_int("k", k, 1)
    if wanted > fewest:
        found = f"a case has {_counted(fewest, 'run')} with a score"
        reason = f"is {wanted}, and {found}; evaluate with repeats={wanted}"
        raise InvalidOptionError(option="k", reason=reason)
    shares = [[math.comb(c, each) / math.comb(n, each) for c, n in counts] for each in range(1, wanted + 1)]
    rates = tuple(math.fsum(of_cases) / len(counts) for of_cases in shares)
    worth = proportion(shares[-1], units)
    return PassesAll(results.variant, metric, rates, len(counts), worth.units, worth.effective)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _passes(run: CaseResult, metric: str, threshold: float) -> bool | None:
    """Return None if the metric does not apply."""
    if run.status == "failed":
        return False
    score = run.scores.get(metric)
    if score is None:
        return None
    return score.value is not None and score.value >= threshold
