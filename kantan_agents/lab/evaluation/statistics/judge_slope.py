"""The weight of a judge's scores next to human labels."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from kantan_agents.lab.evaluation.statistics.independent_units import Floats

_NOTHING: Final = 1e-12


def slope_of(y: Floats, f: Floats, shares: Floats) -> float:
    """Return the slope of labels ``y`` over scores ``f``; 0 if the scores do not vary."""
    y, f = y - shares @ y, f - shares @ f
    return float(_ratio(shares @ (f * y), np.asarray(shares @ f**2), f))


def slope_contributions(y: Floats, f: Floats, shares: Floats, units: npt.NDArray[np.intp]) -> Floats:
    """Return the contribution of each sampling unit to the error of the corrected mean.

    The sum of their squares is its jackknife variance. ``f`` is relative to the mean score of all cases.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 11; for clusters Shao and
    Tu, The Jackknife and Bootstrap (1995), section 6.2.
    """
    y_mean, f_mean = float(shares @ y), float(shares @ f)
    y, f = y - y_mean, f - f_mean
    share, of_y, of_f, products, squares = (
        np.bincount(units, shares * one) for one in (np.ones_like(y), y, f, f * y, f**2)
    )
    without = 1.0 - share
    slopes = _ratio(
        products.sum() - products - of_f * of_y / without, squares.sum() - squares - of_f**2 / without, f
    )
    estimates = y_mean - of_y / without - slopes * (f_mean - of_f / without)
    result: Floats = -without * (estimates - (without @ estimates) / without.sum())
    return result


def _ratio(product: Floats, square: Floats, f: Floats) -> Floats:
    varies = square > _NOTHING * max(float(np.max(f**2)), _NOTHING)
    result: Floats = np.where(varies, product / np.where(varies, square, 1.0), 0.0)
    return result
