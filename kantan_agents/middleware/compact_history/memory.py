"""Bounded memory of plans and token counts."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any

import attrs
from cachetools import LRUCache

from kantan_agents.middleware.compact_history.plan import WHOLE, CompactionPlan

MOST_RATIO = 4.0
"""Maximum counted tokens for each estimated one."""

_LEAST_RATIO = 0.5
_PLAUSIBLE = 10


@attrs.frozen
class Counted:
    """A provider's token count, and our estimate."""

    tokens: int
    estimate: int

    @property
    def is_plausible(self) -> bool:
        """Some servers do not count cached tokens."""
        return self.estimate <= self.tokens * _PLAUSIBLE and self.tokens <= self.estimate * _PLAUSIBLE

    @property
    def ratio(self) -> float:
        """Counted tokens for each estimated one."""
        return min(max(self.tokens / max(self.estimate, 1), _LEAST_RATIO), MOST_RATIO)


class Memory:
    """The latest plans and counts, by digests of conversations."""

    def __init__(self, most: int) -> None:
        self._plans: LRUCache[Any, CompactionPlan] = LRUCache(most)
        self._counts: LRUCache[Any, Counted] = LRUCache(most)
        self._lock = Lock()

    def plan(self, key: Any, digests: Sequence[bytes]) -> CompactionPlan:
        """Return the plan for the longest known prefix."""
        found = self._longest(self._plans, key, digests)
        return WHOLE if found is None else found

    def keep_plan(self, key: Any, digests: Sequence[bytes], plan: CompactionPlan) -> None:
        """Store a plan for conversations with this prefix."""
        if plan.covers:
            with self._lock:
                self._plans[key, digests[plan.covers - 1]] = plan

    def counted(self, model: Any, digests: Sequence[bytes]) -> Counted | None:
        """Return the count for the longest known prefix."""
        found: Counted | None = self._longest(self._counts, model, digests)
        return found

    def keep_count(self, model: Any, digests: Sequence[bytes], counted: Counted) -> None:
        """Store a count, in place of the prefix's."""
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
