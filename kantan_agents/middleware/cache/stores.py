"""``CacheStore``, and ``MemoryStore``."""

from __future__ import annotations

from threading import Lock
from time import monotonic
from typing import Any, Final, Protocol, runtime_checkable

from cachetools import TLRUCache

from kantan_agents.support.arguments import checked_int

_MEGABYTE: Final = 1024 * 1024


@runtime_checkable
class CacheStore(Protocol):
    """Where ``Cache`` stores answers. It may be used from several threads and event loops.

    If a method raises, the error is logged and the model is called.

    Attributes:
        is_persistent: Whether answers are written to a disk or another machine. Answers of runs with
            ``trace_include_sensitive_data=False`` are not written to such a store.
    """

    is_persistent: bool

    async def read(self, key: str) -> bytes | None:
        """Return the body stored under a key; None if it is missing or expired."""
        ...

    async def write(self, key: str, body: bytes, ttl: float) -> None:
        """Store a body for ``ttl`` seconds."""
        ...

    async def remove(self, key: str) -> None:
        """Remove the body stored under a key."""
        ...

    async def clear(self) -> None:
        """Remove everything."""
        ...


class MemoryStore:
    """Stores answers in the memory of this process, and evicts the least recently used ones.

    Args:
        max_bytes: Maximum size of all answers in bytes, by default 64 MiB.

    Raises:
        InvalidOptionError: E75, ``max_bytes`` is not an int above 0.
    """

    is_persistent = False

    def __init__(self, max_bytes: int = 64 * _MEGABYTE) -> None:
        self.max_bytes = checked_int("max_bytes", max_bytes, 1)
        self._lock = Lock()
        self._answers: Any = TLRUCache(
            self.max_bytes,
            ttu=lambda _key, value, now: now + value[1],
            timer=monotonic,
            getsizeof=lambda value: len(value[0]),
        )

    async def read(self, key: str) -> bytes | None:
        """Return the body stored under a key; None if it is missing or expired."""
        with self._lock:
            found: tuple[bytes, float] | None = self._answers.get(key)
        return None if found is None else found[0]

    async def write(self, key: str, body: bytes, ttl: float) -> None:
        """Store a body for ``ttl`` seconds, unless it alone is larger than the store."""
        if len(body) <= self.max_bytes:
            with self._lock:
                self._answers[key] = (body, ttl)

    async def remove(self, key: str) -> None:
        """Remove the body stored under a key."""
        with self._lock:
            self._answers.pop(key, None)

    async def clear(self) -> None:
        """Remove everything."""
        with self._lock:
            self._answers.clear()

    def __len__(self) -> int:
        with self._lock:
            self._answers.expire()
            return len(self._answers)

    def __repr__(self) -> str:
        return f"MemoryStore({len(self)} answers)"
