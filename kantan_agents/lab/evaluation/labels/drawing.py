"""Samples the results to label."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import NamedTuple

from kantan_agents.lab.evaluation.labels.rows import ResultRow

RunKey = tuple[str, str, int]
"""Id and hash of a case, and the number of the repetition."""


class Draw(NamedTuple):
    """Sampled results in display order, and the probability of each."""

    results: tuple[ResultRow, ...]
    probability: float


def draw(results: Iterable[ResultRow], sample: int | None, seed: int, by: str) -> Draw:
    """Sample runs of cases at random; the variants of a run stay together.

    The lowest random numbers, from the seed and the key, are sampled. So a larger sample contains a smaller
    one, even after the dataset has grown, and reviewers with the same seed label the same runs first.

    Source: Ohlsson, Coordination of samples using permanent random numbers, in Cox et al. (editors), Business
    Survey Methods (1995), chapter 9.
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
    """Return the run key that a result shares with the other variants."""
    case_id, case_hash, _, repeat = row.key
    return case_id, case_hash, repeat


def _shuffled(runs: Mapping[RunKey, list[ResultRow]], key: RunKey, seed: int, by: str) -> list[ResultRow]:
    return sorted(runs[key], key=lambda row: _number(seed, by, *row.key))


def _number(*parts: object) -> bytes:
    return sha256(repr(parts).encode("utf-8", "surrogatepass")).digest()
