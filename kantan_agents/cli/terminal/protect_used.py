"""Protects files in use from the agent's tools."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

_TOOLKIT = "kantan_agents.toolkit.factory"


def protect_database(path: str | os.PathLike[str]) -> None:
    """Protect a database that this process writes from agents with tools."""
    if _TOOLKIT in sys.modules:
        from kantan_agents.toolkit.protected import TRACES, protect

        protect(path, TRACES)


def protect_used(paths: Iterable[str | os.PathLike[str] | None], *, has_tools: bool = False) -> None:
    """Protect paths that control permissions or programs, such as the file of ``--rules``.

    Without tools for files in this process, this does nothing, unless the agent will get some
    (``has_tools``).
    """
    if not has_tools and _TOOLKIT not in sys.modules:
        return
    from kantan_agents.toolkit.protected import AGENTS, protect

    for path in paths:
        if path is not None:
            protect(path, AGENTS)
