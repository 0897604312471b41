"""Finds keys of a context that look like a reserved key but are not it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from rapidfuzz.distance import OSA

_FOLDED = str.maketrans("", "", "_- ")


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
