"""What is remembered of conversations: their plans, and what providers have counted. Bounded."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any

import attrs
from cachetools import LRUCache

from kantan_agents.middleware.compact_history.plan import WHOLE, CompactionPlan

MOST_RATIO = 4.0
"""The most tokens that are expected for each estimated one."""

_LEAST_RATIO = 0.5
_PLAUSIBLE = 10


@attrs.frozen
class Counted:
    """What a provider has counted for a request.

    Attributes:
        tokens: The tokens that the provider has counted.
        estimate: The tokens that were estimated.
    """

    tokens: int
    estimate: int

    @property
    def is_plausible(self) -> bool:
        """Whether the count can be that of the whole request: some servers leave out what they had cached."""
        return self.estimate <= self.tokens * _PLAUSIBLE and self.tokens <= self.estimate * _PLAUSIBLE

    @property
    def ratio(self) -> float:
        """Counted tokens for each estimated one, within bounds."""
        return min(max(self.tokens / max(self.estimate, 1), _LEAST_RATIO), MOST_RATIO)


class Memory:
    """Plans and counts, by the digest of what they are about.

    Args:
        most: How many of each are kept, the latest.
    """

    def __init__(self, most: int) -> None:
        self._plans: LRUCache[Any, CompactionPlan] = LRUCache(most)
        self._counts: LRUCache[Any, Counted] = LRUCache(most)
        self._lock = Lock()

    def plan(self, key: Any, digests: Sequence[bytes]) -> CompactionPlan:
        """Return the plan for the longest beginning of a conversation, given by its digests."""
        found = self._longest(self._plans, key, digests)
        return WHOLE if found is None else found

    def keep_plan(self, key: Any, digests: Sequence[bytes], plan: CompactionPlan) -> None:
        """Keep a plan for all conversations that begin like this one."""
        if plan.covers:
            with self._lock:
                self._plans[key, digests[plan.covers - 1]] = plan

    def counted(self, model: Any, digests: Sequence[bytes]) -> Counted | None:
        """Return what the model's provider has counted for the longest beginning of a request."""
        found: Counted | None = self._longest(self._counts, model, digests)
        return found

    def keep_count(self, model: Any, digests: Sequence[bytes], counted: Counted) -> None:
        """Keep what a provider has counted for a request, in place of the count of its beginning."""
        if not (counted.is_plausible and digests):
            return
        with self._lock:
            beginning = next((one for one in reversed(digests) if (model, one) in self._counts), None)
            self._counts.pop((model, beginning), None)
            self._counts[model, digests[-1]] = counted

    def _longest(self, cache: LRUCache[Any, Any], key: Any, digests: Sequence[bytes]) -> Any:
        with self._lock:
            if not cache:
                return None
            return next((cache[key, digest] for digest in reversed(digests) if (key, digest) in cache), None)
