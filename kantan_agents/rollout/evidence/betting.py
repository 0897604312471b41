"""Evidence as the wealth of a gambler who bets against a hypothesis."""

from __future__ import annotations

import math
from typing import Final, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]

FRACTIONS: Final = (0.9, *(2.0**-power for power in range(1, 10)))
"""Which parts of the largest safe stake are bet, each with the same share of the first wealth."""

_ROUNDING: Final = 1e-9


@attrs.frozen(eq=False)
class Evidence:
    """How strongly the observations speak against a hypothesis, after each of them.

    The wealth of a gambler starts at 1. While the hypothesis holds, no bet against it has an expected gain.
    So the wealth ever reaches 1 / alpha with a probability of at most alpha, however often one looks.

    Attributes:
        path: Shape (observations,): natural logarithm of the wealth after each observation.
    """

    path: Floats = attrs.field(repr=False)

    @property
    def current(self) -> float:
        """Logarithm of the wealth after the last observation; 0 before the first."""
        return float(self.path[-1]) if len(self.path) else 0.0

    @property
    def highest(self) -> float:
        """Logarithm of the largest wealth so far, at least 0. It never falls, so a verdict remains."""
        return max(0.0, float(self.path.max())) if len(self.path) else 0.0

    @property
    def p(self) -> float:
        """The anytime-valid p-value: the reciprocal of the largest wealth so far, from 0 to 1."""
        return math.exp(-self.highest)

    def rejects(self, alpha: float) -> bool:
        """Return whether the hypothesis is rejected with a probability of a false alarm of ``alpha``.

        Raises:
            ValueError: ``alpha`` is not between 0 and 1.
        """
        return self.highest >= threshold(alpha)

    def rejected_at(self, alpha: float) -> int | None:
        """Return after how many observations the hypothesis was first rejected; None if it is not.

        Raises:
            ValueError: ``alpha`` is not between 0 and 1.
        """
        reached = np.flatnonzero(self.path >= threshold(alpha))
        return int(reached[0]) + 1 if len(reached) else None


def threshold(alpha: float) -> float:
    """Return the logarithm of the wealth that rejects at ``alpha``.

    Raises:
        ValueError: ``alpha`` is not between 0 and 1.
    """
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha must be between 0 and 1, not {alpha}")
    return -math.log(alpha)


def log_e_process(values: npt.ArrayLike, lowest: npt.ArrayLike) -> Evidence:
    """Return the evidence against "each value has a mean of at most 0, given the earlier ones".

    A stake may be at most 1 / -lowest, for then a value cannot make the wealth negative. Ten gamblers bet
    fixed fractions of it. The evidence is their average wealth, so one need not know how large an effect is.
    All is computed in logarithms, so that long sequences neither overflow nor vanish.

    Args:
        values: Shape (observations,): in any unit, each at least its ``lowest``.
        lowest: Shape (observations,): the least that each value could be, below 0 and in the same unit. It
            may depend on earlier values, but not on the value itself or on later ones.

    Raises:
        ValueError: The arrays differ in shape, or contain NaN or infinity; a ``lowest`` is not below 0, or a
            value is below its ``lowest``.

    Source: Waudby-Smith and Ramdas, Estimating means of bounded random variables by betting, Journal of the
    Royal Statistical Society B 86 (2024), section 4, several fixed bets at once; Ville, Étude critique
    de la notion de collectif (1939), for the bound; Ramdas, Grünwald, Vovk and Shafer, Game-theoretic
    statistics and safe anytime-valid inference, Statistical Science 38 (2023).
    """
    gains, least = np.asarray(values, dtype=np.float64), np.asarray(lowest, dtype=np.float64)
    if gains.ndim != 1 or gains.shape != least.shape:
        raise ValueError(f"values and lowest must be lists of the same length: {gains.shape}, {least.shape}")
    if not (np.isfinite(gains).all() and np.isfinite(least).all()):
        raise ValueError("values and lowest must be finite numbers")
    if not (least < 0.0).all():
        raise ValueError("lowest must be below 0")
    if not (gains >= least * (1.0 + _ROUNDING)).all():
        raise ValueError("a value is below its lowest")
    return Evidence(mixed(log_wealths(gains / -least)))


def log_wealths(ratios: Floats) -> Floats:
    """Return the logarithm of each gambler's wealth, shape (fractions, observations).

    Args:
        ratios: Shape (observations,): each value divided by the largest loss, at least -1.
    """
    wealths = np.empty((len(FRACTIONS), len(ratios)))
    for row, fraction in zip(wealths, FRACTIONS, strict=True):
        np.multiply(ratios, fraction, out=row)
        np.add(row, 1.0, out=row)
        np.log(row, out=row)
        np.cumsum(row, out=row)
    return wealths


def mixed(logs: Floats) -> Floats:
    """Return the logarithm of the average, for each column of an array of logarithms."""
    largest = logs.max(axis=0)
    result: Floats = largest + np.log(np.mean(np.exp(logs - largest), axis=0))
    return result


def with_skipped(evidence: Evidence, used: Flags) -> Evidence:
    """Return the evidence after each of all observations, where those not ``used`` leave it as it is.

    Args:
        evidence: That of the observations that are used.
        used: Shape (all observations,): which are used.
    """
    return Evidence(np.concatenate(([0.0], evidence.path))[np.cumsum(used)])
