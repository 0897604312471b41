"""Cohen's kappa: the agreement of two raters on categories."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kantan_agents.lab.evaluation.statistics.agreement import Agreement, agreement_interval
from kantan_agents.lab.evaluation.statistics.intervals import check_level
from kantan_agents.lab.evaluation.statistics.units import Floats


def cohens_kappa(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = 2_000,
    seed: int = 0,
) -> Agreement:
    """Return the agreement of two raters beyond chance, such as of a judge and a person.

    Two raters who both say yes in 90 % of all cases agree in 82 % by chance. Kappa leaves that out.
    Categories have no order; for grades, use `krippendorff_alpha`.

    Args:
        first: Shape (items,): the first rater's categories: texts, numbers or booleans.
        second: The second rater's categories, in the same order.
        level: The confidence level.
        resamples: How many bootstrap resamples of the items to draw.
        seed: The same seed gives the same interval.

    Raises:
        ValueError: The shapes differ, there are no items, or ``level`` or ``resamples`` is out of range.

    Source: Cohen, A coefficient of agreement for nominal scales, Educational and Psychological Measurement 20
    (1960).
    """
    check_level(level)
    one, two = np.asarray(first), np.asarray(second)
    if one.ndim != 1 or one.shape != two.shape or not len(one) or resamples < 1:
        raise ValueError(f"kappa needs two lists of the same length, not of {one.shape} and {two.shape}")
    categories, codes = np.unique(np.concatenate([one, two]), return_inverse=True)
    count, size = len(one), len(categories)
    table = np.bincount(codes[:count] * size + codes[count:], minlength=size * size).reshape(size, size)
    if table.T.tolist() < table.tolist():  # so that it does not matter who is first
        table = table.T
    value = float(_kappa(table[None].astype(np.float64))[0])
    if np.isnan(value):
        return Agreement(None, None, count)
    random = np.random.default_rng(seed)
    drawn = random.multinomial(count, table.ravel() / count, size=resamples).reshape(-1, size, size)
    return Agreement(value, agreement_interval(value, _kappa(drawn.astype(np.float64)), count, level), count)


def _kappa(tables: Floats) -> Floats:
    """Return kappa for each table of shape (categories, categories); NaN where it is undefined."""
    count = tables.sum(axis=(1, 2))
    observed = np.trace(tables, axis1=1, axis2=2) / count
    expected = (tables.sum(axis=1) * tables.sum(axis=2)).sum(axis=1) / count**2
    with np.errstate(invalid="ignore", divide="ignore"):
        result: Floats = np.where(expected < 1.0, (observed - expected) / (1.0 - expected), np.nan)
    return result
