"""Logs tool providers that an environment did not have at an earlier start."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sys
from collections.abc import Iterable
from pathlib import Path

from kantan_agents.support.log import get_logger
from kantan_agents.support.private_files import open_private
from kantan_agents.tools.providers.choice import Declaration
from kantan_agents.tools.providers.entry_points import Collected

DIRECTORY_VARIABLE = "KANTAN_AGENTS_STATE_DIR"

_log = get_logger("kantan_agents.tools")


def log_new_providers(collected: Collected) -> None:
    """Log each loaded provider that the environment did not have at an earlier start, and remember it.

    The first start in an environment only remembers. If the state file cannot be read or written, that is
    logged at level debug, and nothing else happens.
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
    """Return the state file of this environment."""
    directory = os.environ.get(DIRECTORY_VARIABLE)
    if directory:
        base = Path(directory)
    else:
        state = os.environ.get("XDG_STATE_HOME", "")
        base = (Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state") / "kantan_agents"  # noqa: PTH117
    prefix = hashlib.sha256(os.fsencode(sys.prefix)).hexdigest()[:16]
    return base / f"tool-providers-{prefix}.json"


def _read(path: Path) -> set[tuple[str, str]] | None:
    """Return what is remembered; None without a usable file."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))["providers"]
        return {(str(name), str(distribution)) for name, distribution in stored}
    except FileNotFoundError:
        return None
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        _log.debug("state file replaced", path=str(path), reason=f"{type(error).__name__}: {error}")
        return None


def _write(path: Path, keys: set[tuple[str, str]]) -> None:
    """Replace the file at once, so that programs that start at the same time read either state."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with open(open_private(beside), "w", encoding="utf-8") as file:  # noqa: PTH123 - a descriptor
            json.dump({"environment": sys.prefix, "providers": sorted(keys)}, file)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
