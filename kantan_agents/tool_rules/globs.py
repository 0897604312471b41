"""Glob patterns in the names of tools."""

from __future__ import annotations

import re

_GLOB = re.compile(r"[*?\[]")


def is_glob(name: str) -> bool:
    """Return whether a name is a glob pattern: it contains ``*``, ``?`` or ``[``."""
    return _GLOB.search(name) is not None


def literal_beginning(name: str) -> str:
    """Return the part of a name before its first wildcard."""
    return _GLOB.split(name, maxsplit=1)[0]
