"""The share of each human label in a mean."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kantan_agents.lab.evaluation.statistics.independent_units import Floats


def checked_labels(labels: npt.ArrayLike, scores: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Return labels and scores as arrays."""
    given, judged = np.asarray(labels, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if given.ndim != 1 or given.shape != judged.shape:
        raise ValueError(f"labels and scores must be lists of the same length: {given.shape}, {judged.shape}")
    if not np.isfinite(judged).all() or np.isinf(given).any():
        raise ValueError("labels must be finite or NaN, and scores must be finite")
    if np.isnan(given).all():
        raise ValueError("no case has a label")
    return given, judged


def shares_of(probabilities: npt.ArrayLike | None, labelled: npt.NDArray[np.bool_]) -> Floats:
    """Return the share of each label in the mean, in inverse proportion to its probability."""
    if probabilities is None:
        return np.full(int(labelled.sum()), 1.0 / labelled.sum())
    given = np.asarray(probabilities, dtype=np.float64)
    if given.shape != labelled.shape:
        raise ValueError(f"there are probabilities of shape {given.shape} for {labelled.shape} cases")
    of_labels = given[labelled]
    if not ((of_labels > 0.0) & (of_labels <= 1.0)).all():
        raise ValueError("probabilities of cases with a label must be above 0 and at most 1")
    result: Floats = (1.0 / of_labels) / np.sum(1.0 / of_labels)
    return result
