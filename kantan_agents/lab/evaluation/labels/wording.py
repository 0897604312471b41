"""Numbers as they are written in verdicts."""

from __future__ import annotations


def counted(count: int, thing: str) -> str:
    """Return a count with its noun: ``1 case``, ``12 cases``."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def bounds(low: float | None, high: float | None) -> list[str]:
    """Return an interval as a list of one text; an empty list if it is not known."""
    return [] if low is None or high is None else [f"{low:.2g} to {high:.2g}"]
