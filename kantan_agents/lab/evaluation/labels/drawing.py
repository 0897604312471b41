"""Draws the results that people are asked about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import NamedTuple

from kantan_agents.lab.evaluation.labels.rows import ResultRow

RunKey = tuple[str, str, int]
"""Id and hash of a case, and the number of the repetition: what all variants of a run have in common."""


class Draw(NamedTuple):
    """The results that were drawn.

    Attributes:
        results: The results in the order in which they are shown.
        probability: With which probability each was drawn, above 0 and at most 1.
    """

    results: tuple[ResultRow, ...]
    probability: float


def draw(results: Iterable[ResultRow], sample: int | None, seed: int, by: str) -> Draw:
    """Draw runs of cases at random; all variants of a run are drawn together, and follow one another.

    Each run has a random number of its own, made of the seed and its key, and those with the lowest are
    drawn. A larger sample therefore contains a smaller one, also after the dataset has grown, and people with
    the same seed label the same runs first. Each person sees the variants of a run in another order.

    Source: Ohlsson, Coordination of samples using permanent random numbers, in Cox et al. (editors), Business
    Survey Methods (1995), chapter 9.

    Args:
        results: All finished results of the variants.
        sample: How many runs; None for all.
        seed: The same seed draws the same runs.
        by: Who is asked.
    """
    runs: dict[RunKey, list[ResultRow]] = {}
    for row in results:
        runs.setdefault(run_of(row), []).append(row)
    count = len(runs) if sample is None else min(sample, len(runs))
    chosen = sorted(runs, key=lambda key: _number(seed, *key))[:count]
    return Draw(
        tuple(row for key in chosen for row in _shuffled(runs, key, seed, by)),
        count / len(runs) if runs else 1.0,
    )


def run_of(row: ResultRow) -> RunKey:
    """Return what a result has in common with those of the other variants."""
    case_id, case_hash, _, repeat = row.key
    return case_id, case_hash, repeat


def _shuffled(runs: Mapping[RunKey, list[ResultRow]], key: RunKey, seed: int, by: str) -> list[ResultRow]:
    return sorted(runs[key], key=lambda row: _number(seed, by, *row.key))


def _number(*parts: object) -> bytes:
    return sha256(repr(parts).encode("utf-8", "surrogatepass")).digest()
