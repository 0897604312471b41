"""How much a judge's scores count beside people's labels, and what each label adds to the error."""

from __future__ import annotations

from typing import Final

import numpy as np

from kantan_agents.lab.evaluation.statistics.independent_units import Floats

_NOTHING: Final = 1e-12


def slope_of(y: Floats, f: Floats, shares: Floats) -> float:
    """Return the slope of labels over scores, with which the scores explain most of the labels.

    Args:
        y: Shape (labels,): the labels.
        f: Shape (labels,): the scores of the same cases.
        shares: Shape (labels,): the share of each label in the mean; they sum to 1.

    Returns:
        The slope; 0 if the scores do not vary.
    """
    y, f = y - shares @ y, f - shares @ f
    return float(_ratio(shares @ (f * y), np.asarray(shares @ f**2), f))


def slope_contributions(y: Floats, f: Floats, shares: Floats) -> Floats:
    """Return what each label contributes to the error of the corrected mean.

    The sum of their squares is its jackknife variance: the mean is estimated without each label in turn, with
    a slope of its own.

    Args:
        y: Shape (labels,): the labels.
        f: Shape (labels,): the scores of the same cases, relative to the mean score of all cases.
        shares: Shape (labels,): the share of each label in the mean; they sum to 1.

    Returns:
        Shape (labels,): contributions that sum to 0.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 11.
    """
    without = 1.0 - shares
    y_mean, f_mean = (shares @ y - shares * y) / without, (shares @ f - shares * f) / without
    estimates = y_mean - _slopes_without(y, f, shares) * f_mean
    result: Floats = -without * (estimates - (without @ estimates) / without.sum())
    return result


def _slopes_without(y: Floats, f: Floats, shares: Floats) -> Floats:
    """Return the slope without each label in turn."""
    y, f = y - shares @ y, f - shares @ f
    taken = shares / (1.0 - shares)
    return _ratio(shares @ (f * y) - taken * f * y, shares @ f**2 - taken * f**2, f)


def _ratio(product: Floats, square: Floats, f: Floats) -> Floats:
    """Return the slope; 0 if the scores do not vary."""
    varies = square > _NOTHING * max(float(np.max(f**2)), _NOTHING)
    result: Floats = np.where(varies, product / np.where(varies, square, 1.0), 0.0)
    return result
