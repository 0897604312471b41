"""Random orders of observations that leave repeats of the same input together."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from kantan_agents.lab.evaluation.statistics.independent_units import Floats

Clusters = Sequence[Hashable | None] | None
Integers = npt.NDArray[np.intp]


@attrs.frozen(eq=False)
class Blocks:
    """Observations in blocks inside clusters, ordered so that equal shapes are adjacent."""

    order: Integers
    block_of: Integers
    size_of: Integers
    cluster_of: Integers
    shape_of: Integers

    def random_orders(self, random: np.random.Generator, count: int) -> Integers:
        """Return ``count`` equally likely orders, of shape (count, observations).

        Clusters of the same shape swap, blocks of the same size swap inside a cluster, and observations swap
        inside a block.
        """
        clusters, blocks, size = len(self.shape_of), len(self.size_of), len(self.order)
        if clusters == size:
            return np.argsort(random.random((count, size)), axis=1)
        # Skip a level whose parts have one member each: sorting is most of the work.
        places = _places(self.shape_of + random.random((count, clusters)))
        if blocks > clusters:
            keys = places[:, self.cluster_of] * blocks + self.size_of + random.random((count, blocks))
            if blocks == size:
                return np.argsort(keys, axis=1)
            places = _places(keys)
        return np.argsort(places[:, self.block_of] + random.random((count, size)), axis=1)


def blocks_of(x: Floats, y: Floats, clusters: Clusters, inside: Clusters) -> Blocks:
    """Return the blocks of observations.

    ``x`` and ``y`` make the result independent of the order of the observations.
    """
    outer, inner = (_named(given, len(x)) for given in (clusters, inside))
    members: dict[Any, dict[Any, list[int]]] = {}
    for index in np.lexsort((y, x)).tolist():
        members.setdefault(outer[index], {}).setdefault(inner[index], []).append(index)

    def key(block: list[int]) -> tuple[int, list[float], list[float]]:
        return len(block), x[block].tolist(), y[block].tolist()

    sorted_blocks = [sorted(blocks.values(), key=key) for blocks in members.values()]
    ordered = sorted(sorted_blocks, key=lambda one: ([len(block) for block in one], [*map(key, one)]))
    shapes = [tuple(map(len, blocks)) for blocks in ordered]
    blocks = [block for one in ordered for block in one]
    return Blocks(
        np.array([index for block in blocks for index in block], dtype=np.intp),
        np.repeat(np.arange(len(blocks)), [len(block) for block in blocks]),
        _numbers([len(block) for block in blocks]),
        np.repeat(np.arange(len(ordered)), [len(one) for one in ordered]),
        _numbers(shapes),
    )


def _named(given: Clusters, count: int) -> list[Any]:
    if given is None:
        return [("alone", index) for index in range(count)]
    if len(given) != count:
        raise ValueError(f"there are {len(given)} clusters for {count} values")
    return [("alone", index) if one is None else ("in", one) for index, one in enumerate(given)]


def _numbers(values: Sequence[Any]) -> Integers:
    places = {value: place for place, value in enumerate(sorted(set(values)))}
    return np.array([places[value] for value in values], dtype=np.intp)


def _places(keys: Floats) -> Integers:
    """Return the position of each column in its sorted row."""
    return np.argsort(np.argsort(keys, axis=1), axis=1)
