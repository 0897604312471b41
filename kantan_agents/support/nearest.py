"""Finds the name that somebody probably meant."""

from __future__ import annotations

from collections.abc import Iterable

from rapidfuzz import fuzz, process

_LONGEST = 200
_NEAR = 60  # percent


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the most similar of ``names``, ignoring case; None if none is similar."""
    found = process.extractOne(
        name[:_LONGEST], sorted(names), scorer=fuzz.ratio, processor=str.lower, score_cutoff=_NEAR
    )
    return None if found is None else str(found[0])
