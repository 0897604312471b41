"""McNemar's exact test for pass or fail metrics."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kantan_agents.lab.evaluation.statistics.distributions import fair_coin_p


class McNemar(NamedTuple):
    """The result of McNemar's test.

    Attributes:
        only_a: Number of cases that only a has passed.
        only_b: Number of cases that only b has passed.
        p: The two-sided p of the hypothesis that both pass equally often.
    """

    only_a: int
    only_b: int
    p: float


def mcnemar(a: npt.ArrayLike, b: npt.ArrayLike) -> McNemar:
    """Test exactly whether a and b pass equally often on the same cases.

    Only cases on which they disagree count: if both were equally good, each would be the toss of a coin.

    It needs independent cases with one answer each. Averaged repeats are no longer 0 or 1, and cases of a
    conversation depend on one another; `paired_p` flips signs for them.

    Args:
        a: Shape (cases,): 1 or True where a has passed, 0 or False where not.
        b: The same for b, in the same order.

    Raises:
        ValueError: The shapes differ, or a value is neither 0 nor 1.

    Source: McNemar, Note on the sampling error of the difference between correlated proportions,
    Psychometrika 12 (1947); exact by the binomial distribution as in Agresti, Categorical Data Analysis (3rd
    edition, 2013), section 11.1.
    """
    before, after = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if before.shape != after.shape or before.ndim != 1:
        raise ValueError(f"a and b must be lists of the same length, not {before.shape} and {after.shape}")
    if not (is_binary(before) and is_binary(after)):
        raise ValueError("McNemar's test is for values that are 0 or 1")
    only_a = int(np.count_nonzero(before > after))
    only_b = int(np.count_nonzero(after > before))
    return McNemar(only_a, only_b, fair_coin_p(only_a, only_b))


def is_binary(values: npt.ArrayLike) -> bool:
    """Return whether all values are 0 or 1."""
    given = np.asarray(values, dtype=np.float64)
    return bool(((given == 0.0) | (given == 1.0)).all())
