"""``Latencies``: how long models usually take, and ``Allowance``: how many more requests are made."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Hashable
from threading import Lock
from typing import Any, Final

from cachetools import LRUCache

_MOST_MODELS: Final = 256
_LEAST: Final = 20


class Latencies:
    """A quantile of the latest latencies of each model. It is thread-safe.

    A request that was ended because another one was faster counts with the time it had taken by then. Its own
    latency is longer, and both are above the quantile, so that the quantile is the same.

    Args:
        quantile: Which one, between 0 and 1.
        window: How many latencies of a model are remembered.
    """

    def __init__(self, quantile: float, window: int) -> None:
        self._quantile = quantile
        self._window = window
        # With fewer, the quantile would be the largest one.
        self._least = max(_LEAST, math.ceil(1 / (1 - quantile)))
        self._lock = Lock()
        self._models: LRUCache[Any, tuple[deque[float], list[float]]] = LRUCache(_MOST_MODELS)

    def add(self, model: Hashable, seconds: float) -> None:
        """Remember a latency."""
        with self._lock:
            known = self._models.get(model)
            if known is None:
                known = self._models[model] = (deque(), [])
            latest, in_order = known
            if len(latest) == self._window:
                del in_order[bisect_left(in_order, latest.popleft())]
            latest.append(seconds)
            insort(in_order, seconds)

    def of(self, model: Hashable) -> float | None:
        """Return the quantile for a model; None as long as too few latencies are known."""
        with self._lock:
            known = self._models.get(model)
            if known is None or len(known[1]) < self._least:
                return None
            return known[1][math.ceil(self._quantile * len(known[1])) - 1]


class Allowance:
    """A token bucket: never more than a share of the requests are made a second time. It is thread-safe.

    Args:
        share: The share.
        most: How many unused ones are saved for a busy moment.
    """

    def __init__(self, share: float, most: float) -> None:
        self._share = share
        self._most = most
        self._left = 0.0
        self._lock = Lock()

    def earn(self) -> None:
        """Count a request."""
        with self._lock:
            self._left = min(self._left + self._share, self._most)

    def spend(self) -> bool:
        """Return whether one more request may be made, and count it."""
        with self._lock:
            if self._left < 1:
                return False
            self._left -= 1
            return True
