"""``paired_p`` and ``paired_interval``: the test and the interval that fit a metric."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from kantan_agents.lab.evaluation.statistics.independent_units import Floats
from kantan_agents.lab.evaluation.statistics.mcnemar import is_binary, mcnemar
from kantan_agents.lab.evaluation.statistics.paired_difference import PairedDifference, paired_difference
from kantan_agents.lab.evaluation.statistics.paired_proportions import paired_proportions
from kantan_agents.lab.evaluation.statistics.sign_flip import sign_flip_p


class PairedTest(NamedTuple):
    """The result of a paired test.

    Attributes:
        p: The two-sided p of the hypothesis that a and b do not differ.
        method: Which test it was.
    """

    p: float
    method: Literal["mcnemar", "sign flip"]


def paired_p(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    clusters: Sequence[Hashable | None] | None = None,
    *,
    resamples: int = 10_000,
    seed: int = 0,
) -> PairedTest:
    """Test whether the scores of a and b differ on the same cases.

    Values of 0 and 1 on independent cases are tested by `mcnemar`. Everything else is tested by
    `sign_flip_p`: other scores, means of several repeats, and cases in conversations.

    Args:
        a: Shape (cases,): the scores of a; repeats are averaged inside a case before.
        b: The scores of b, in the same order.
        clusters: For each case what it belongs to, such as its conversation; None for a case of its own.
        resamples: How many patterns of signs to draw where there are too many to enumerate.
        seed: The same seed gives the same p.

    Raises:
        ValueError: The arrays are empty, have other shapes, or contain NaN or infinity; or ``resamples`` is
            below 1.
    """
    before, after = _checked(a, b)
    if _is_yes_no(before, after, clusters):
        return PairedTest(mcnemar(before, after).p, "mcnemar")
    return PairedTest(sign_flip_p(after - before, clusters, resamples=resamples, seed=seed), "sign flip")


def paired_interval(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    clusters: Sequence[Hashable | None] | None = None,
    *,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> PairedDifference:
    """Return the mean difference of the scores of a and b on the same cases, with its interval.

    Values of 0 and 1 on independent cases have the interval of `paired_proportions`. Everything else has that
    of `paired_difference`: other scores, means of several repeats, and cases in conversations.

    Args:
        a: Shape (cases,): the scores of a; repeats are averaged inside a case before.
        b: The scores of b, in the same order.
        clusters: For each case what it belongs to, such as its conversation; None for a case of its own.
        level: The confidence level.
        resamples: How many resamples to draw.
        seed: The same seed gives the same interval.

    Raises:
        ValueError: The arrays are empty, have other shapes, or contain NaN or infinity; or ``level`` or
            ``resamples`` is out of range.
    """
    before, after = _checked(a, b)
    if _is_yes_no(before, after, clusters):
        return paired_proportions(before, after, level=level)
    return paired_difference(after - before, clusters, level=level, resamples=resamples, seed=seed)


def _checked(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[Floats, Floats]:
    before, after = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if before.shape != after.shape:
        raise ValueError(f"a and b must have the same length, not {before.shape} and {after.shape}")
    return before, after


def _is_yes_no(before: Floats, after: Floats, clusters: Sequence[Hashable | None] | None) -> bool:
    """Return whether these are yes or no of independent cases."""
    return bool(before.size) and not _has_clusters(clusters) and is_binary(before) and is_binary(after)


def _has_clusters(clusters: Sequence[Hashable | None] | None) -> bool:
    """Return whether any two cases belong together."""
    named = [cluster for cluster in clusters or () if cluster is not None]
    return len(set(named)) < len(named)
