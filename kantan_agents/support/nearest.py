"""Finds the name that somebody probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

_LONGEST = 200
_NEAR = 60  # percent
_FOLDED = str.maketrans("", "", "_- ")


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the most similar of ``names``, ignoring case; None if none is similar."""
    found = process.extractOne(
        name[:_LONGEST], sorted(names), scorer=fuzz.ratio, processor=str.lower, score_cutoff=_NEAR
    )
    return None if found is None else str(found[0])


def near_keys(keys: Iterable[Any], reserved: str) -> list[str]:
    """Return the keys that differ from ``reserved`` by one letter, by case, or by ``-`` and ``_`` only."""
    return [key for key in keys if isinstance(key, str) and _is_near(key, reserved)]


@lru_cache(maxsize=4096)
def _is_near(key: str, reserved: str) -> bool:
    if key == reserved or abs(len(key) - len(reserved)) > 2:  # noqa: PLR2004 - one letter, one separator
        return False
    folded = key.lower().translate(_FOLDED)
    if folded == "userroles":  # one letter away, and a usual key of its own
        return False
    return OSA.distance(folded, reserved.translate(_FOLDED), score_cutoff=1) <= 1
