"""Glob patterns in names."""

from __future__ import annotations

import re

_GLOB = re.compile(r"[*?\[]")


def is_glob(name: str) -> bool:
    """Whether it contains ``*``, ``?`` or ``[``."""
    return _GLOB.search(name) is not None


def literal_beginning(name: str) -> str:
    """Return the part before the first wildcard."""
    return _GLOB.split(name, maxsplit=1)[0]


def may_match_beginning(entry: str, beginning: str) -> bool:
    """Whether an entry may match a name with this prefix."""
    tool = entry.partition("(")[0]
    literal = literal_beginning(tool)
    return literal.startswith(beginning) or (is_glob(tool) and beginning.startswith(literal))
