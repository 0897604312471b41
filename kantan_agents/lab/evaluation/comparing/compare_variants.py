"""Whether one variant is better than another, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np

from kantan_agents.errors import NotComparableError
from kantan_agents.lab.evaluation.comparing.any_look import at_any_look
from kantan_agents.lab.evaluation.comparing.comparison import (
    NO_DIFFERENCE,
    Comparison,
    Looks,
    MetricComparison,
)
from kantan_agents.lab.evaluation.comparing.how import How, check_results, checked_how, chosen_metrics
from kantan_agents.lab.evaluation.comparing.missing_scores import Missing
from kantan_agents.lab.evaluation.comparing.paired_values import (
    FIGURES,
    PairedValues,
    better_of,
    failed_scores,
    givers_of,
    paired_values,
    runs_of_cases,
)
from kantan_agents.lab.evaluation.comparing.run_order import run_order
from kantan_agents.lab.evaluation.comparing.verdicts import judged
from kantan_agents.lab.evaluation.experiment.results import VariantResults
from kantan_agents.lab.evaluation.statistics import (
    detectable_difference,
    fewest_cases,
    is_binary,
    more_cases,
    paired_difference,
    paired_interval,
    paired_p,
)

_WANTED: Final = 0.05
"""The default relevant difference, as a share of the mean for scores not from 0 to 1."""
_AMOUNTS: Final = frozenset(FIGURES) - {"failed"}
# The smallest p of a random test is about 1 / resamples. It must be far below the adjusted level.
_SMALLEST: Final = 10
# Equal up to rounding: means of repeats are sums divided by their number.
_EQUAL: Final = 1e-12


def compare(
    a: VariantResults,
    b: VariantResults,
    *,
    metrics: str | Iterable[str] | None = None,
    wanted: Mapping[str, float] | None = None,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    missing: Missing = "worst",
    looks: Looks | None = None,
) -> Comparison:
    """Compare two variants, case by case.

        comparison = compare(evaluation["v1"], evaluation["v2"])
        print(comparison.text)

    Repeats of a case are averaged, and the cases of a conversation count as one observation. A verdict
    requires significance at ``1 - level`` after Holm's adjustment for all compared metrics, and an interval,
    if there is one, that excludes 0. Otherwise it is "cannot tell", with the number of additional cases
    needed.

    A run that failed or has no score counts as the worst score, so that crashes do not improve a mean. For
    scores from 0 to 1 that is 0, or 1 if lower is better; for others 0, or twice the worst score if that is
    worse. Evaluators that do not apply leave nothing missing. ``latency``, ``tokens`` and ``cost`` count
    finished runs only.

    By default, verdicts hold for one look: adding cases until a verdict is clear, with ten looks, gives a
    false one in 18 of 100 experiments without a difference. In that case use ``looks="any"`` from the first
    look. For more than two variants, use `compare_all`.

    Args:
        a: The baseline, such as ``evaluation["v1"]``.
        b: The results that the verdicts are about, even of another evaluation of the same cases.
        metrics: By default the evaluators' metrics, and ``failed``, ``latency``, ``tokens`` and ``cost``
            where known. Fewer metrics detect smaller differences.
        wanted: For each metric, the relevant difference, for ``more_cases``; by default 0.05 for scores from
            0 to 1, and 5 % of the mean for others.
        level: Confidence level.
        resamples: Number of resamples of intervals and tests; more where many tests need a small p.
        seed: The same seed gives the same result.
        missing: ``"worst"``, or ``"ignore"`` to omit the cases in which a variant has no score.
        looks: ``"one"``, or ``"any"`` for verdicts that hold at any look while cases are added, which take
            about twice as many cases. By default ``"any"`` if cases were added after an earlier start. Cases
            count in the order in which their runs started; add all cases of a conversation together, with all
            their repeats. Only scores from 0 to 1 have an interval then.

    Raises:
        NotComparableError: E105, they have no case or no metric in common.
        InvalidOptionError: E75, an argument is invalid.
    """
    check_results(a=a, b=b)
    how = checked_how(level, resamples, seed, wanted, missing, looks, (a, b))
    chosen = chosen_metrics(metrics, a, b)
    how = attrs.evolve(how, tests=len(chosen))
    return judged([compare_pair(a, b, _names(a, b), chosen, how)])[0]


def compare_pair(
    a: VariantResults, b: VariantResults, names: tuple[str, str], metrics: Sequence[str], how: How
) -> Comparison:
    """Return the comparison of two variants, without adjusted p and verdicts."""
    runs_a, runs_b = runs_of_cases(a), runs_of_cases(b)
    common = [key for key in runs_a if key in runs_b]
    if not common:
        raise NotComparableError(a=names[0], b=names[1], reason=_nothing_in_common(a, b))
    is_known, compared = True, []
    for metric in metrics:
        values = paired_values(metric, runs_a, runs_b, better_of(metric, a, b), how.missing)
        wanted = (how.wanted or {}).get(metric)
        one = _compared(values, names, wanted, how)
        if how.looks == "any":
            failed_count = how.missing == "worst" and metric not in _AMOUNTS
            order, is_known = run_order(runs_a, runs_b, failed_count=failed_count)
            one = at_any_look(one, values, order, how)
        compared.append(attrs.evolve(one, **_counted(values, names), **_conflict(metric, a, b)))
    unpaired = [key[0] for key in (*runs_a, *runs_b) if key not in runs_a or key not in runs_b]
    return Comparison(
        *names,
        tuple(compared),
        len(common),
        tuple(dict.fromkeys(unpaired)),
        {names[0]: len(a.failed), names[1]: len(b.failed)},
        _failed_scores(metrics, names, a, b),
        how.level,
        how.missing,
        how.looks,
        a.is_grown or b.is_grown,
        is_known,
    )


def _names(a: VariantResults, b: VariantResults) -> tuple[str, str]:
    if a.variant != b.variant:
        return a.variant, b.variant
    if a.evaluation != b.evaluation:
        return f"{a.variant} of {a.evaluation}", f"{b.variant} of {b.evaluation}"
    return a.variant, f"{b.variant} (again)"


def _nothing_in_common(a: VariantResults, b: VariantResults) -> str:
    for one in (a, b):
        if not one.results:
            return f"{one.variant!r} has no results"
    if {one.case_id for one in a.results} & {one.case_id for one in b.results}:
        return "the cases with the same ids have another content; evaluate both on the same dataset"
    return "no case was run with both; evaluate both on the same dataset"


def _conflict(metric: str, a: VariantResults, b: VariantResults) -> dict[str, Any]:
    versions_a, versions_b = givers_of(metric, a), givers_of(metric, b)
    no_number = {"more_cases": None, "fewest": 0}
    if versions_a and versions_b and versions_a != versions_b:
        reason = "the scores are of different versions of the evaluator; evaluate both with the same"
        return {"reason": reason, **no_number}
    if versions_a and better_of(metric, a) != better_of(metric, b):
        return {
            "reason": "for one of them a higher score is better, and for the other a lower one",
            **no_number,
        }
    return {}


def _counted(values: PairedValues, names: tuple[str, str]) -> dict[str, Any]:
    missing = {name: count for name, count in zip(names, values.missing, strict=True) if count}
    return {"missing": missing, "worst": values.worst, "left_out": values.left_out}


def _failed_scores(
    metrics: Sequence[str], names: tuple[str, str], a: VariantResults, b: VariantResults
) -> dict[str, dict[str, int]]:
    counts = {
        metric: dict(zip(names, (failed_scores(metric, a), failed_scores(metric, b)), strict=True))
        for metric in metrics
    }
    return {metric: of_variants for metric, of_variants in counts.items() if any(of_variants.values())}


def _compared(
    values: PairedValues, names: tuple[str, str], wanted: float | None, how: How
) -> MetricComparison:
    count = len(values.cases)
    if not count:
        return _without_values(values, names)
    # Rounding errors of equal values have a sign, but no meaning.
    scale = max(map(abs, (*values.a, *values.b)))
    pairs = list(zip(values.a, values.b, strict=True))
    rounded = tuple(before if abs(after - before) <= _EQUAL * scale else after for before, after in pairs)
    values = attrs.evolve(values, b=rounded)
    differences = [after - before for before, after in zip(values.a, values.b, strict=True)]
    # Seconds that happen to be 0 or 1 are not pass or fail.
    binary = values.metric not in _AMOUNTS and is_binary(values.a) and is_binary(values.b)
    drawn: dict[str, Any] = {"resamples": how.resamples, "seed": how.seed}
    if binary:
        found = paired_interval(values.a, values.b, values.conversations, level=how.level, **drawn)
    else:
        found = paired_difference(differences, values.conversations, level=how.level, **drawn)
    together: dict[str, Any] = {"alpha": 1 - how.level, "metrics": how.tests}
    size = wanted if wanted is not None else _worth_knowing(values)
    sign = 1 if values.better == "higher" else -1
    turned = [one * sign for one in differences]
    enough = max(how.resamples, math.ceil(_SMALLEST * how.tests / (1 - how.level)))
    test = paired_p(values.a, values.b, values.conversations, resamples=enough, seed=how.seed)
    return MetricComparison(
        metric=values.metric,
        a=names[0],
        b=names[1],
        better=values.better,
        is_binary=binary,
        cases=count,
        independent=found.units,
        mean_a=float(np.mean(values.a)),
        mean_b=float(np.mean(values.b)),
        difference=found.mean,
        low=None if found.interval is None else found.interval.low,
        high=None if found.interval is None else found.interval.high,
        p=test.p,
        p_adjusted=None,
        detectable=detectable_difference(differences, values.conversations, **together),
        wanted=size,
        more_cases=None if not size else more_cases(differences, size, values.conversations, **together),
        wins=_cases(values, turned, 1),
        ties=_cases(values, turned, 0),
        losses=_cases(values, turned, -1),
        verdict="cannot tell",
        reason=_reason(found.units, differences),
        no_interval=found.missing,
        fewest=fewest_cases(alpha=1 - how.level),
    )


def _without_values(values: PairedValues, names: tuple[str, str]) -> MetricComparison:
    reason = "no case has a score on both sides"
    nothing = (None,) * 10
    return MetricComparison(
        values.metric, *names, values.better, False, 0, 0, *nothing, (), (), (), "cannot tell", reason, reason
    )


def _reason(units: int, differences: Sequence[float]) -> str | None:
    if units == 1:
        what = "there is one case" if len(differences) == 1 else "all cases are of one conversation"
        return f"{what}, and chance cannot be judged from it"
    return NO_DIFFERENCE if not any(differences) else None


def _worth_knowing(values: PairedValues) -> float:
    if all(0 <= value <= 1 for value in (*values.a, *values.b)) and values.metric not in FIGURES:
        return _WANTED
    return _WANTED * abs(float(np.mean(values.a)))


def _cases(values: PairedValues, turned: Sequence[float], sign: int) -> tuple[str, ...]:
    return tuple(case for case, one in zip(values.cases, turned, strict=True) if np.sign(one) == sign)
