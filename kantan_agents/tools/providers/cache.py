"""The installed tool providers, collected once per process."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import secrets
import sys
from collections.abc import Iterable
from pathlib import Path
from threading import RLock
from typing import Any

from kantan_agents.errors import InvalidOptionError
from kantan_agents.support.log import get_logger
from kantan_agents.support.private_files import open_private
from kantan_agents.tools.providers.choice import Declaration, entry_points_function, permitted_providers
from kantan_agents.tools.providers.entry_points import Collected, ToolProvider, collect

_Key = tuple["frozenset[str] | None", Any]
"""Permitted names, and the function that lists entry points, which a test may replace."""

DIRECTORY_VARIABLE = "KANTAN_AGENTS_STATE_DIR"

_log = get_logger("kantan_agents.tools")


class _Cache:
    """By permitted names."""

    def __init__(self) -> None:
        self._lock = RLock()  # reentrant: a provider that requests the providers gets an error
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
        return None if self._collected is None else self._collected[1]

    def clear(self) -> None:
        with self._lock:
            self._collected = None

    def remember(self, collected: Collected) -> None:
        """Log the new providers once for each collection."""
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


def loaded_providers() -> tuple[ToolProvider, ...]:
    """Do not load further ones."""
    collected = cache.loaded
    return () if collected is None else collected.providers


def collected_providers() -> Collected:
    """Return all permitted providers; E75 if the environment variable is invalid."""
    return cache.get()


def refresh_tool_providers() -> None:
    """Collect the providers again when they are next needed, for example after an installation.

    Existing agents keep their tools and rules. Modules that are already imported are not reloaded.
    """
    importlib.invalidate_caches()
    cache.clear()


def log_new_providers(collected: Collected) -> None:
    """Log each provider that is new since an earlier start, and store it.

    The first start in an environment only stores. Problems with the state file are debug messages.
    """
    try:
        path = _path()
        known, installed = _read(path), _keys(collected.declared)
        if known is not None and installed <= known:
            return
        if known is not None:
            _log_providers(collected, known)
        _write(path, installed | (known or set()))
    except (OSError, RuntimeError, ValueError) as error:
        _log.debug("tool providers not remembered", reason=f"{type(error).__name__}: {error}")


def _log_providers(collected: Collected, known: set[tuple[str, str]]) -> None:
    for provider in collected.providers:
        if not _keys([provider.declared]) <= known:
            _log.warning(
                f"an installed package gives new tools to agents: {provider.declared}",
                provider=provider.name,
                distribution=str(provider.declared),
                tools=[tool.name for tool in provider.tools],
            )


def _keys(declared: Iterable[Declaration]) -> set[tuple[str, str]]:
    # Without the version: an update is not a new package.
    return {(one.name, one.distribution or "") for one in declared}


def _path() -> Path:
    directory = os.environ.get(DIRECTORY_VARIABLE)
    if directory:
        base = Path(directory)
    else:
        state = os.environ.get("XDG_STATE_HOME", "")
        base = (Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state") / "kantan_agents"  # noqa: PTH117
    prefix = hashlib.sha256(os.fsencode(sys.prefix)).hexdigest()[:16]
    return base / f"tool-providers-{prefix}.json"


def _read(path: Path) -> set[tuple[str, str]] | None:
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))["providers"]
        return {(str(name), str(distribution)) for name, distribution in stored}
    except FileNotFoundError:
        return None
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        _log.debug("state file replaced", path=str(path), reason=f"{type(error).__name__}: {error}")
        return None


def _write(path: Path, keys: set[tuple[str, str]]) -> None:
    """Write atomically, for concurrent starts."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with open(open_private(beside), "w", encoding="utf-8") as file:  # noqa: PTH123 - a descriptor
            json.dump({"environment": sys.prefix, "providers": sorted(keys)}, file)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
