"""Evidence as the wealth of a gambler who bets against a hypothesis."""

from __future__ import annotations

import math
from typing import Final

import attrs
import numpy as np
import numpy.typing as npt

from kantan_agents.lab.betting.running import Flags, Floats, running_mean

EFFECTS: Final = tuple(2.0**-power for power in range(9))
"""Each gambler bets optimally for a mean this many standard deviations above 0."""

FIRST_WEALTH: Final = np.array([1.0, 2.0, 3.0, 3.0, 3.0, 3.0, 2.0, 1.0, 1.0]) / 19.0
"""Each gambler's initial wealth: more for effects of common interest."""

_EFFECTS: Final = np.array(EFFECTS)[:, np.newaxis]
LARGEST_STAKE: Final = 0.9
"""As a fraction of the stake that could lose everything."""

_ROUNDING: Final = 1e-9


@attrs.frozen(eq=False)
class Evidence:
    """The strength of the evidence against a hypothesis, after each observation.

    The wealth of a gambler starts at 1. While the hypothesis holds, no bet against it has an expected gain.
    So the wealth ever reaches 1 / alpha with a probability of at most alpha, however often one looks.

    Attributes:
        path: Shape (observations,): natural logarithm of the wealth after each observation.
    """

    path: Floats = attrs.field(repr=False)

    @property
    def current(self) -> float:
        """Logarithm of the current wealth; 0 before the first observation."""
        return float(self.path[-1]) if len(self.path) else 0.0

    @property
    def highest(self) -> float:
        """Logarithm of the largest wealth so far, at least 0. It never falls, so a verdict remains."""
        return max(0.0, float(self.path.max())) if len(self.path) else 0.0

    @property
    def p(self) -> float:
        """The anytime-valid p-value: the reciprocal of the largest wealth, from 0 to 1."""
        return math.exp(-self.highest)

    def rejects(self, alpha: float) -> bool:
        """Return whether the hypothesis is rejected at the false-alarm probability ``alpha``.

        Raises:
            ValueError: ``alpha`` is not between 0 and 1.
        """
        return self.highest >= threshold(alpha)

    def rejected_at(self, alpha: float) -> int | None:
        """Return the number of observations at the first rejection; None without one.

        Raises:
            ValueError: ``alpha`` is not between 0 and 1.
        """
        reached = np.flatnonzero(self.path >= threshold(alpha))
        return int(reached[0]) + 1 if len(reached) else None


def threshold(alpha: float) -> float:
    """Return the logarithm of the wealth that rejects at ``alpha``."""
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha must be between 0 and 1, not {alpha}")
    return -math.log(alpha)


def log_e_process(
    values: npt.ArrayLike, lowest: npt.ArrayLike, scale: npt.ArrayLike | None = None
) -> Evidence:
    """Return the evidence against "each value has a mean of at most 0, given the earlier ones".

    If the mean is d and the standard deviation s, the stake d / s^2 makes the wealth grow fastest. Nine
    gamblers bet for d / s = 1, 1/2, 1/4 and so on to 1/256, and the evidence is their average wealth. So the
    size of the effect need not be known. No stake is above 0.9 / -lowest, so no value can take all wealth.
    The computation uses logarithms, so that long sequences neither overflow nor vanish.

    Args:
        values: Shape (observations,): on any scale, each at least its ``lowest``.
        lowest: Shape (observations,): a lower bound of each value, below 0 and on the same scale.
        scale: Shape (observations,): about the standard deviation of each value, above 0 and on the same
            scale. None for the root mean square of the earlier values. It affects power, not validity.

    ``lowest`` and ``scale`` may depend on earlier values, but not on the value itself or on later ones.

    Raises:
        ValueError: The arrays differ in shape, or contain NaN or infinity; a ``lowest`` is not below 0, a
            ``scale`` is not above 0, or a value is below its ``lowest``.

    Source: Waudby-Smith and Ramdas, Estimating means of bounded random variables by betting, Journal of the
    Royal Statistical Society B 86 (2024), section 4, several bets together; Kelly, A new interpretation of
    information rate, Bell System Technical Journal 35 (1956), for the stake; Ville, Étude critique de la
    notion de collectif (1939), for the bound; Ramdas, Grünwald, Vovk and Shafer, Game-theoretic statistics
    and safe anytime-valid inference, Statistical Science 38 (2023).
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
    if scale is None:
        spread = np.sqrt(running_mean(gains**2, float(np.sum(least[:1] ** 2))))
    else:
        spread = np.asarray(scale, dtype=np.float64)
    if spread.shape != gains.shape or not (np.isfinite(spread) & (spread > 0.0)).all():
        raise ValueError("scale must be a finite number above 0 for each value")
    return Evidence(mixed(log_wealths(gains, least, spread)))


def log_wealths(values: Floats, lowest: Floats, scale: Floats) -> Floats:
    """Return the logarithm of each gambler's wealth; shape (gamblers, observations)."""
    # Relative to the scale, for very small and very large values.
    units, most = values / scale, LARGEST_STAKE * scale / -lowest
    wealths: Floats = np.minimum(most, _EFFECTS)
    wealths *= units
    wealths += 1.0
    np.log(wealths, out=wealths)
    np.cumsum(wealths, axis=1, out=wealths)
    return wealths


def mixed(wealths: Floats) -> Floats:
    """Return the logarithm of the average wealth, from shape (gamblers, times)."""
    largest = wealths.max(axis=0)
    result: Floats = largest + np.log(FIRST_WEALTH @ np.exp(wealths - largest))
    return result


def with_skipped(evidence: Evidence, used: Flags) -> Evidence:
    """Return the evidence after all observations; those that are not ``used`` have no effect."""
    return Evidence(np.concatenate(([0.0], evidence.path))[np.cumsum(used)])
