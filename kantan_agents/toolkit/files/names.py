"""File names as strings for the model."""

from __future__ import annotations

import os


def shown_path(parts: tuple[str, ...]) -> str:
    """Return a path relative to the root; bytes that are not UTF-8 are escaped."""
    return shown("/".join(parts)) or "."


def fitting(lines: list[str], most: int) -> int:
    """Return how many of the first lines fit into ``most`` characters."""
    for place, line in enumerate(lines):
        most -= len(line) + 1
        if most < 0:
            return place
    return len(lines)


def shown(name: str) -> str:
    """Return a file name as one line of valid Unicode."""
    if name.isascii() and name.isprintable():
        return name
    text = os.fsencode(name).decode("utf-8", "backslashreplace")
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
