"""The test and the interval that fit a metric."""

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
        method: The test that gave it.
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

    `mcnemar` tests values of 0 and 1 on independent cases. `sign_flip_p` tests everything else: other scores,
    means of repeats, and cases in conversations.

    Args:
        a: Shape (cases,): scores of a; average the repeats of a case first.
        b: Scores of b, in the same order.
        clusters: As for `paired_difference`.
        resamples: Number of random sign patterns, where there are too many to enumerate.
        seed: The same seed gives the same p.

    Raises:
        ValueError: As for `sign_flip_p`.
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

    `paired_proportions` gives it for values of 0 and 1 on independent cases, `paired_difference` for
    everything else.

    Args:
        a: Shape (cases,): scores of a; average the repeats of a case first.
        b: Scores of b, in the same order.
        clusters: As for `paired_difference`.
        level: Confidence level.
        resamples: Number of resamples.
        seed: The same seed gives the same interval.

    Raises:
        ValueError: As for `paired_difference`.
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
    return bool(before.size) and not _has_clusters(clusters) and is_binary(before) and is_binary(after)


def _has_clusters(clusters: Sequence[Hashable | None] | None) -> bool:
    named = [cluster for cluster in clusters or () if cluster is not None]
    return len(set(named)) < len(named)
