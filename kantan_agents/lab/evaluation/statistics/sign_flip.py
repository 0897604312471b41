"""The sign-flip test."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from kantan_agents.lab.evaluation.statistics.independent_units import Floats, units_of

MOST_ENUMERATED: Final = 16
"""Up to this many differing sampling units, all 2^16 sign patterns are enumerated."""

_AT_ONCE: Final = 8  # flips that one byte of random bits decides
_ROUNDING: Final = 1e-12


def sign_flip_p(
    differences: npt.ArrayLike,
    clusters: Sequence[Hashable | None] | None = None,
    *,
    resamples: int = 10_000,
    seed: int = 0,
) -> float:
    """Return the two-sided p of the hypothesis that a and b do not differ.

    If they did not, each difference could as well have had the opposite sign. p is the share of sign patterns
    whose mean is at least as far from zero as the observed one. Cases of one cluster flip together. Zeros do
    not count.

    Up to 16 differing sampling units, all patterns are enumerated and p is exact. For more, patterns are
    random, and the observed one counts as one of them, so p is never 0 and the test remains valid. Neither
    the order of the cases nor swapping a and b changes p.

    Args:
        differences: Shape (cases,): score of b minus score of a.
        clusters: As for `paired_difference`.
        resamples: Number of random patterns, where there are too many to enumerate.
        seed: The same seed gives the same p.

    Raises:
        ValueError: The arrays are empty, have other shapes, or contain NaN or infinity; or ``resamples`` is
            below 1.

    Source: Fisher, The Design of Experiments (1935), section 21; for the random patterns Phipson and Smyth,
    Permutation p-values should never be zero, Statistical Applications in Genetics and Molecular Biology 9
    (2010), section 3.
    """
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1, not {resamples}")
    units = units_of(differences, clusters)
    observed = abs(math.fsum(units.totals))
    totals = np.sort(np.abs(units.totals[units.totals != 0.0]))
    if not len(totals):
        return 1.0
    # Sums that differ only by rounding are equal; counting them is conservative.
    least = observed - _ROUNDING * math.fsum(totals)
    if len(totals) <= MOST_ENUMERATED:
        return float(np.mean(np.abs(_all_sums(totals)) >= least))
    extreme = np.count_nonzero(np.abs(_random_sums(totals, resamples, seed)) >= least)
    return (1 + int(extreme)) / (1 + resamples)


def _all_sums(values: Floats) -> Floats:
    """The last sign is fixed, since the other sums mirror these."""
    sums = values[-1:]
    for value in values[:-1]:
        sums = np.concatenate([sums + value, sums - value])
    return sums


def _random_sums(values: Floats, resamples: int, seed: int) -> Floats:
    """Eight signs at a time, from a table of their 256 sums."""
    random = np.random.default_rng(seed)
    signs = 1.0 - 2.0 * ((np.arange(256)[:, None] >> np.arange(_AT_ONCE)) & 1)
    sums = np.zeros(resamples)
    for start in range(0, len(values), _AT_ONCE):
        few = values[start : start + _AT_ONCE]
        table = signs[:, : len(few)] @ few
        bits = random.integers(256, size=resamples, dtype=np.uint8).astype(np.intp)
        sums += table.take(bits, mode="clip")
    return sums
