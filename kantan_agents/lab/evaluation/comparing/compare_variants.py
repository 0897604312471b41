"""``compare``: whether one variant is better than another, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np

from kantan_agents.errors import InvalidOptionError, NotComparableError
from kantan_agents.lab.evaluation.comparing.comparison import Comparison, MetricComparison, Verdict
from kantan_agents.lab.evaluation.comparing.paired_values import (
    FIGURES,
    PairedValues,
    better_of,
    failed_scores,
    givers_of,
    paired_values,
    runs_of_cases,
)
from kantan_agents.lab.evaluation.experiment.results import VariantResults
from kantan_agents.lab.evaluation.statistics import (
    detectable_difference,
    fewest_cases,
    holm,
    is_binary,
    more_cases,
    paired_difference,
    paired_interval,
    paired_p,
)
from kantan_agents.support.arguments import checked_int, checked_list, checked_number, checked_text, shown
from kantan_agents.support.nearest import nearest

_WANTED: Final = 0.05
"""A difference worth knowing: of a score from 0 to 1, or as a share of the mean of any other metric."""
_AMOUNTS: Final = frozenset(FIGURES) - {"failed"}
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
) -> Comparison:
    """Compare two variants, case by case.

        comparison = compare(evaluation["v1"], evaluation["v2"])
        print(comparison.text)

    Each case is compared with itself: repeats are averaged inside a case, and the cases of one conversation
    count as one observation. A verdict is given if the difference is significant at ``1 - level`` after
    Holm's adjustment for all metrics that are compared, and its interval, if there is one, excludes 0.
    Otherwise the answer is "cannot tell", with the number of cases that it would take.

    Args:
        a: The results to compare with, such as ``evaluation["v1"]``.
        b: The results that the verdicts are about. They may be of another evaluation of the same cases.
        metrics: The metrics to compare; by default those of the evaluators, and ``failed``, ``latency``,
            ``tokens`` and ``cost`` as far as they are known. Fewer metrics find smaller differences.
        wanted: For each metric, the difference that is worth knowing, for ``more_cases``; by default 0.05 for
            scores from 0 to 1, and 5 % of the mean for others.
        level: The confidence level.
        resamples: How many resamples the intervals and the tests draw.
        seed: The same seed gives the same result.

    Raises:
        NotComparableError: E105, they have no case or no metric in common.
        InvalidOptionError: E75, an argument is invalid.
    """
    for option, one in (("a", a), ("b", b)):
        if not isinstance(one, VariantResults):
            reason = f'must be the results of a variant, such as evaluation["v1"], not {type(one).__name__}'
            raise InvalidOptionError(option=option, reason=reason)
    if not 0 < checked_number("level", level, above_zero=True) < 1:
        raise InvalidOptionError(option="level", reason=f"must be between 0 and 1, not {level}")
    checked_int("resamples", resamples, 1)
    _check_wanted(wanted)
    names = _names(a, b)
    runs_a, runs_b = runs_of_cases(a), runs_of_cases(b)
    common = [key for key in runs_a if key in runs_b]
    if not common:
        raise NotComparableError(a=names[0], b=names[1], reason=_nothing_in_common(a, b))
    chosen = _chosen(metrics, a, b)
    checked_int("seed", seed, 0)
    compared = [
        attrs.evolve(
            _compared(
                paired_values(metric, runs_a, runs_b, better_of(metric, a, b)),
                names,
                (wanted or {}).get(metric),
                (level, resamples, seed, len(chosen)),
            ),
            **_conflict(metric, a, b),
        )
        for metric in chosen
    ]
    unpaired = [key[0] for key in (*runs_a, *runs_b) if key not in runs_a or key not in runs_b]
    return Comparison(
        *names,
        tuple(_judged(compared, 1 - level)),
        len(common),
        tuple(dict.fromkeys(unpaired)),
        {names[0]: len(a.failed), names[1]: len(b.failed)},
        _failed_scores(chosen, names, a, b),
        level,
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


def _chosen(metrics: str | Iterable[str] | None, a: VariantResults, b: VariantResults) -> Sequence[str]:
    scored = list(dict.fromkeys((*a.metrics, *b.metrics)))
    figures = [name for name in FIGURES if name not in scored and _is_known(name, a) and _is_known(name, b)]
    if metrics is None:
        if not scored and not figures:
            raise NotComparableError(a=a.variant, b=b.variant, reason="they have no metric")
        return [*scored, *figures]
    listed = [metrics] if isinstance(metrics, str) else checked_list("metrics", metrics)
    for metric in listed:
        checked_text("metrics", metric)
    chosen = list(dict.fromkeys(listed))
    for metric in chosen:
        if metric not in scored and metric not in FIGURES:
            near = nearest(metric, [*scored, *FIGURES])
            known = ", ".join((*scored, *figures))
            hint = f"did you mean {near!r}?" if near is not None else f"there are {known}"
            raise InvalidOptionError(option="metrics", reason=f"there is no {metric!r}; {hint}")
    if not chosen:
        raise InvalidOptionError(option="metrics", reason="name at least one")
    return chosen


def _conflict(metric: str, a: VariantResults, b: VariantResults) -> dict[str, Any]:
    """Return the reason why scores of a metric mean different things, if they do."""
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


def _failed_scores(
    metrics: Sequence[str], names: tuple[str, str], a: VariantResults, b: VariantResults
) -> dict[str, dict[str, int]]:
    counts = {
        metric: dict(zip(names, (failed_scores(metric, a), failed_scores(metric, b)), strict=True))
        for metric in metrics
    }
    return {metric: of_variants for metric, of_variants in counts.items() if any(of_variants.values())}


def _check_wanted(wanted: Any) -> None:
    if wanted is None:
        return
    if not isinstance(wanted, Mapping):
        raise InvalidOptionError(option="wanted", reason=f"must be a dict by metric, not {shown(wanted)}")
    for metric, size in wanted.items():
        if not isinstance(size, (int, float)) or isinstance(size, bool) or not 0 < size < math.inf:
            reason = f"of {metric!r} must be a number above 0, not {shown(size)}"
            raise InvalidOptionError(option="wanted", reason=reason)


def _is_known(figure: str, results: VariantResults) -> bool:
    """Return whether a figure says anything: some runs have failed, have used tokens, have a price."""
    return any(FIGURES[figure](one) for one in results.results) or figure == "failed"


def _compared(
    values: PairedValues, names: tuple[str, str], wanted: float | None, how: tuple[float, int, int, int]
) -> MetricComparison:
    """Return the comparison by one metric, before its p is adjusted for the others.

    Args:
        values: The values of the metric.
        names: The names of both variants.
        wanted: The difference that is worth knowing; None for the default.
        how: The confidence level, the number of resamples, the seed, and how many metrics are compared.
    """
    level, resamples, seed, metrics = how
    count = len(values.cases)
    differences = [after - before for before, after in zip(values.a, values.b, strict=True)]
    if not count:
        return _without_values(values, names)
    # Seconds that happen to be 0 or 1 are not answers.
    binary = values.metric not in _AMOUNTS and is_binary(values.a) and is_binary(values.b)
    options: dict[str, Any] = {"level": level, "resamples": resamples, "seed": seed}
    if binary:
        found = paired_interval(values.a, values.b, values.conversations, **options)
    else:
        found = paired_difference(differences, values.conversations, **options)
    together: dict[str, Any] = {"alpha": 1 - level, "metrics": metrics}
    size = wanted if wanted is not None else _worth_knowing(values)
    sign = 1 if values.better == "higher" else -1
    scale = max(map(abs, (*values.a, *values.b)))
    turned = [0.0 if abs(one) <= _EQUAL * scale else one * sign for one in differences]
    test = paired_p(values.a, values.b, values.conversations, resamples=resamples, seed=seed)
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
        fewest=fewest_cases(**together),
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
    return "no case differs" if not any(differences) else None


def _worth_knowing(values: PairedValues) -> float:
    if all(0 <= value <= 1 for value in (*values.a, *values.b)) and values.metric not in FIGURES:
        return _WANTED
    return _WANTED * abs(float(np.mean(values.a)))


def _cases(values: PairedValues, turned: Sequence[float], sign: int) -> tuple[str, ...]:
    return tuple(case for case, one in zip(values.cases, turned, strict=True) if np.sign(one) == sign)


def _judged(compared: Sequence[MetricComparison], alpha: float) -> list[MetricComparison]:
    """Return the comparisons with their p adjusted for each other, and their verdicts."""
    known = [one.p for one in compared if one.p is not None and one.reason is None]
    adjusted = iter(holm(known) if known else ())
    judged: list[MetricComparison] = []
    for one in compared:
        p = next(adjusted) if one.p is not None and one.reason is None else None
        verdict: Verdict = "cannot tell"
        if p is not None and p <= alpha and one.difference and not _contains_zero(one):
            verdict = "better" if (one.difference > 0) == (one.better == "higher") else "worse"
        judged.append(attrs.evolve(one, p_adjusted=None if p is None else float(p), verdict=verdict))
    return judged


def _contains_zero(one: MetricComparison) -> bool:
    return one.low is not None and one.high is not None and one.low <= 0 <= one.high
