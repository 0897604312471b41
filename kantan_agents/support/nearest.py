"""Finds similar names."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

_LONGEST: Final = 200
_NEAR: Final = 0.6
_FOLDED: Final = str.maketrans("", "", "_- ")


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Ignores case; None if none is similar."""
    known = sorted(names)
    found = most_similar(name[:_LONGEST].lower(), [one.lower() for one in known], 1, _NEAR)
    return known[found[0]] if found else None


def near_keys(keys: Iterable[Any], reserved: str) -> list[str]:
    """Return keys that differ by one letter, by case, or by ``-`` and ``_``."""
    return [key for key in keys if isinstance(key, str) and _is_near(key, reserved)]


@lru_cache(maxsize=4096)
def _is_near(key: str, reserved: str) -> bool:
    if key == reserved or abs(len(key) - len(reserved)) > 2:  # noqa: PLR2004 - one letter, one separator
        return False
    folded = key.lower().translate(_FOLDED)
    if folded == "userroles":  # one letter away, and a common key
        return False
    return _is_one_edit_away(folded, reserved.translate(_FOLDED))


def _is_one_edit_away(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    while short and short[0] == long[0]:
        short, long = short[1:], long[1:]
    if len(short) != len(long):
        return short == long[1:]
    return short[1:] == long[1:] or (short[:2] == long[1::-1] and short[2:] == long[2:])


def most_similar(text: str, others: Sequence[str], limit: int, least: float = 0.0) -> list[int]:
    """Return the indexes of the most similar strings, in order.

    Similarity is 2 * LCS / (sum of lengths); LCS is the longest common subsequence.
    """
    count_common, length = common_letters_with(text), len(text)
    without_letters = str.maketrans("", "", text)
    best: list[tuple[float, int]] = []  # a heap with the least similar and last one at the top
    for place, other in enumerate(others):
        both = length + len(other)
        # Most strings are excluded by their letters alone, without the order.
        shared = len(other) - len(other.translate(without_letters))
        if both and 2 * min(length, shared) < least * both:
            continue
        similarity = 1.0 - (both - 2 * count_common(other)) / both if both else 1.0
        if similarity < least or (len(best) == limit and similarity <= best[0][0]):
            continue
        add = heapq.heappush if len(best) < limit else heapq.heappushpop
        add(best, (similarity, -place))
        if len(best) == limit:
            least = best[0][0]
    return [-place for _, place in sorted(best, reverse=True)]


def common_letters_with(text: str) -> Callable[[str], int]:
    """Return a function: the length of the longest common subsequence.

    Each position of ``text`` is a bit of an integer (Hyyrö, "Bit-parallel LCS-length computation revisited",
    2004).
    """
    length = len(text)
    every = (1 << length) - 1
    places: dict[str, int] = {}
    for place, letter in enumerate(text):
        places[letter] = places.get(letter, 0) | 1 << place
    places_of = places.get

    def count_common(other: str) -> int:
        unmatched = every
        for letter in other:
            found = places_of(letter)
            if found is not None:
                matched = unmatched & found
                unmatched = (unmatched + matched) | (unmatched - matched)
        return length - (unmatched & every).bit_count()

    return count_common
