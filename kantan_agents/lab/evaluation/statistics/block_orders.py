"""``Blocks``: random orders of observations that leave repeats of the same thing together."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from kantan_agents.lab.evaluation.statistics.independent_units import Floats

Clusters = Sequence[Hashable | None] | None
"""For each observation what it belongs to; None for one of its own."""

Integers = npt.NDArray[np.intp]


@attrs.frozen(eq=False)
class Blocks:
    """Observations in blocks inside clusters, ordered so that those of the same shape follow one another.

    Attributes:
        order: Shape (observations,): the order.
        block_of: Shape (observations,): number of the block of each observation, in that order.
        size_of: Shape (blocks,): a number for the size of each block, below the number of blocks.
        cluster_of: Shape (blocks,): number of the cluster of each block.
        shape_of: Shape (clusters,): a number for the sizes of the blocks of each cluster.
    """

    order: Integers
    block_of: Integers
    size_of: Integers
    cluster_of: Integers
    shape_of: Integers

    def random_orders(self, random: np.random.Generator, count: int) -> Integers:
        """Return random orders, each equally likely.

        Clusters of the same shape change places, blocks of the same size inside a cluster, and observations
        inside a block.

        Returns:
            Shape (count, observations): which observation takes each place.
        """
        clusters, blocks, size = len(self.shape_of), len(self.size_of), len(self.order)
        if clusters == size:
            return np.argsort(random.random((count, size)), axis=1)
        # A level whose parts have one member each is left out: sorting is most of the work.
        places = _places(self.shape_of + random.random((count, clusters)))
        if blocks > clusters:
            keys = places[:, self.cluster_of] * blocks + self.size_of + random.random((count, blocks))
            if blocks == size:
                return np.argsort(keys, axis=1)
            places = _places(keys)
        return np.argsort(places[:, self.block_of] + random.random((count, size)), axis=1)


def blocks_of(x: Floats, y: Floats, clusters: Clusters, inside: Clusters) -> Blocks:
    """Return the blocks of observations.

    Args:
        x: Shape (observations,): one value of each.
        y: The other value. Both give an order in which the order of the observations does not matter.
        clusters: What each observation belongs to.
        inside: Which block of its cluster it belongs to.

    Raises:
        ValueError: The lengths differ.
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
    """Return a number for each value, in ascending order of the values."""
    places = {value: place for place, value in enumerate(sorted(set(values)))}
    return np.array([places[value] for value in values], dtype=np.intp)


def _places(keys: Floats) -> Integers:
    """Return which place each column has in its row if the row is sorted."""
    return np.argsort(np.argsort(keys, axis=1), axis=1)
