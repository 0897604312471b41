"""Checked arguments of ``compare`` and ``compare_all``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast, get_args

import attrs

from kantan_agents.errors import InvalidOptionError, NotComparableError
from kantan_agents.lab.evaluation.comparing.comparison import Looks
from kantan_agents.lab.evaluation.comparing.missing_scores import Missing, checked_missing
from kantan_agents.lab.evaluation.comparing.paired_values import FIGURES
from kantan_agents.lab.evaluation.experiment.results import VariantResults
from kantan_agents.support.arguments import checked_int, checked_list, checked_number, checked_text, shown
from kantan_agents.support.nearest import nearest


@attrs.frozen
class How:
    """Arguments of ``compare``, and the number of p that are adjusted together."""

    level: float
    resamples: int
    seed: int
    wanted: Mapping[str, float] | None
    missing: Missing
    looks: Looks
    tests: int = 1


def checked_how(
    level: Any,
    resamples: Any,
    seed: Any,
    wanted: Any,
    missing: Any,
    looks: Any,
    given: Iterable[VariantResults],
) -> How:
    """Return how to compare the given variants."""
    if not 0 < checked_number("level", level, above_zero=True) < 1:
        raise InvalidOptionError(option="level", reason=f"must be between 0 and 1, not {level}")
    _check_wanted(wanted)
    by_default: Looks = "any" if any(one.is_grown for one in given) else "one"
    return How(
        level,
        checked_int("resamples", resamples, 1),
        checked_int("seed", seed, 0),
        wanted,
        checked_missing("missing", missing),
        checked_looks("looks", looks) or by_default,
    )


def checked_looks(option: str, given: Any) -> Looks | None:
    """Return a valid ``looks``, or None."""
    if given not in (None, *get_args(Looks)):
        raise InvalidOptionError(option=option, reason=f'must be "one" or "any", not {shown(given)}')
    return cast("Looks | None", given)


def check_results(**given: Any) -> None:
    """Raise E75 unless all arguments are results of variants."""
    for option, one in given.items():
        if not isinstance(one, VariantResults):
            reason = f'must be the results of a variant, such as evaluation["v1"], not {type(one).__name__}'
            raise InvalidOptionError(option=option, reason=reason)


def chosen_metrics(
    metrics: str | Iterable[str] | None, a: VariantResults, *others: VariantResults
) -> Sequence[str]:
    """Return the named metrics, or all known ones."""
    scored = list(dict.fromkeys(metric for one in (a, *others) for metric in one.metrics))
    figures = [
        name
        for name in FIGURES
        if name not in scored and _is_known(name, a) and any(_is_known(name, one) for one in others)
    ]
    if metrics is None:
        if not scored and not figures:
            raise NotComparableError(a=a.variant, b=others[0].variant, reason="they have no metric")
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
    return any(FIGURES[figure](one) for one in results.results) or figure == "failed"
