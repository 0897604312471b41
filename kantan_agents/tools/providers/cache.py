"""The installed tool providers, collected once per process."""

from __future__ import annotations

import importlib
from threading import RLock
from typing import Any

from kantan_agents.errors import InvalidOptionError
from kantan_agents.tools.providers.choice import entry_points_function, permitted_providers
from kantan_agents.tools.providers.entry_points import Collected, ToolProvider, collect
from kantan_agents.tools.providers.new_providers import log_new_providers

_Key = tuple["frozenset[str] | None", Any]
"""The permitted names, and the function that lists entry points, which a test may replace."""


class _Cache:
    """The providers of this process, collected on first use for each set of permitted names."""

    def __init__(self) -> None:
        self._lock = RLock()  # reentrant, so that a provider that requests the providers gets an error
        self._collecting = False
        self._collected: tuple[_Key, Collected] | None = None
        self._remembered: Collected | None = None

    def get(self) -> Collected:
        key, collected = (permitted_providers(), entry_points_function()), self._collected
        if collected is None or collected[0] != key:
            with self._lock:
                collected = self._collected
                if collected is None or collected[0] != key:
                    collected = self._collected = (key, self._collect(key[0]))
        return collected[1]

    @property
    def loaded(self) -> Collected | None:
        """What was collected last, or None."""
        return None if self._collected is None else self._collected[1]

    def clear(self) -> None:
        with self._lock:
            self._collected = None

    def remember(self, collected: Collected) -> None:
        """Log the providers that are new since an earlier start, once for each collection."""
        with self._lock:
            if self._remembered is not collected:
                self._remembered = collected
                log_new_providers(collected)

    def _collect(self, permitted: frozenset[str] | None) -> Collected:
        if self._collecting:
            raise InvalidOptionError(
                option="tool_providers",
                reason="must be None for an Agent that a tool provider makes: they are not collected yet",
            )
        self._collecting = True
        try:
            return collect(permitted)
        finally:
            self._collecting = False


cache = _Cache()
"""The providers of this process."""


def loaded_providers() -> tuple[ToolProvider, ...]:
    """Return the providers that are loaded already."""
    collected = cache.loaded
    return () if collected is None else collected.providers


def collected_providers() -> Collected:
    """Return all installed providers that the process permits; they are collected once per process.

    Raises:
        InvalidOptionError: E75, the environment variable that limits them is not valid.
    """
    return cache.get()


def refresh_tool_providers() -> None:
    """Collect the providers again when they are next needed, for example after an installation.

    Existing agents keep their tools and rules. Modules that are already imported are not reloaded.
    """
    importlib.invalidate_caches()
    cache.clear()
