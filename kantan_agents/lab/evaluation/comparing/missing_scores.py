"""Missing scores in a comparison."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal, cast, get_args

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation.experiment.results import Better, CaseResult
from kantan_agents.support.arguments import shown

Missing = Literal["worst", "ignore"]


def checked_missing(option: str, given: Any) -> Missing:
    """Return a valid ``missing``."""
    if given not in get_args(Missing):
        raise InvalidOptionError(option=option, reason=f"must be 'worst' or 'ignore', not {shown(given)}")
    return cast("Missing", given)


def worst_value(scores: Iterable[float], better: Better) -> float | None:
    """Return the value of a missing score.

    Scales other than 0 to 1 have no known end, and a failed run must never be as good as a scored one.
    """
    found = list(scores)
    if not found:
        return None
    lowest, highest = min(found), max(found)
    if lowest >= 0 and highest <= 1:
        return 0.0 if better == "higher" else 1.0
    return min(0.0, 2 * lowest) if better == "higher" else max(0.0, 2 * highest)


class MissingScores:
    """Finds the runs of a variant that lack a score of a metric.

    Evaluators that do not apply to a run, or that never scored the variant, leave nothing missing.
    """

    def __init__(self, metric: str, givers: Collection[str], runs: Sequence[CaseResult]) -> None:
        self._metric = metric
        self._givers = frozenset(givers)
        asked = {name for one in runs for name in _asked(one)}
        self._is_scored = not asked or not self._givers or not self._givers.isdisjoint(asked)

    def lacks(self, run: CaseResult) -> bool:
        """Return whether a run without a value of the metric should have one."""
        if self._metric in run.scores or (run.status == "failed" and self._is_scored):
            return True
        own = [name for name, (giver, _) in run.evaluators.items() if giver in self._givers]
        if any(run.scores[name].value is None for name in own if name in run.scores):
            return True
        return self._is_scored and bool(self._givers) and self._givers.isdisjoint(_asked(run))


def _asked(run: CaseResult) -> set[str]:
    return {*run.not_applicable, *(giver for giver, _ in run.evaluators.values())}
