"""What stands in the place of something that was found, and what it stands for."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, MutableMapping
from typing import Literal

Mode = Literal["mask", "hash", "block"]

_DIGITS = 16


class Placeholders:
    """What placeholders look like: ``[email]``, ``[email_1]`` or ``[email:9f86d081884c7d65]``.

    Args:
        names: Names of the rules.
    """

    def __init__(self, names: Iterable[str]) -> None:
        known = "|".join(map(re.escape, names))
        self._pattern = re.compile(rf"\[(?:{known})(?:_[0-9]{{1,9}}|:[0-9a-f]{{{_DIGITS}}})?\]")
        self._longest = max(map(len, names)) + _DIGITS + 3
        self._beginning = re.compile(r"\[[A-Za-z0-9_:]*")

    def find(self, text: str, start: int, *, whole: bool) -> tuple[list[tuple[int, int]], int]:
        """Return where placeholders stand in a text, and up to where that is final."""
        final = len(text)
        if not whole:
            begun = text.rfind("[", max(start, final - self._longest))
            if begun >= 0 and self._beginning.fullmatch(text, begun) is not None:
                final = begun
        return [found.span() for found in self._pattern.finditer(text, start)], final

    def replace(self, text: str, change: Callable[[str], str]) -> str:
        """Return a text with each placeholder sent through ``change``."""
        return self._pattern.sub(lambda found: change(found[0]), text) if "[" in text else text


class Replacements:
    """The placeholders of one run, and what they stand for.

    Args:
        mode: How they are made.
        key: The key of the hashes.
        numbered: Whether equal masks tell different values apart.
        values: What each stands for; is added to.
    """

    def __init__(self, mode: Mode, key: bytes, *, numbered: bool, values: MutableMapping[str, str]) -> None:
        self._mode = mode
        self._key = key
        self._numbered = numbered
        self._values = values
        self._known = {(_rule_of(place), value): place for place, value in values.items()}
        self._seen: set[str] = set(values)
        self._counts: dict[str, int] = {}

    def place_for(self, rule: str, value: str) -> str:
        """Return what stands for a value, the same each time."""
        if self._mode == "mask" and not self._numbered:
            return f"[{rule}]"
        known = self._known.get((rule, value))
        if known is None:
            known = self._known[rule, value] = self._new(rule, value)
            if self._numbered:
                self._values[known] = value
                self._seen.add(known)
        return known

    def note(self, place: str) -> None:
        """Note a placeholder that stands in a text already: of an earlier run, it is not given to another."""
        self._seen.add(place)

    def value_of(self, place: str) -> str:
        """Return what a placeholder stands for; itself, if it is none of these."""
        return self._values.get(place, place)

    def _new(self, rule: str, value: str) -> str:
        if self._mode == "hash":
            digest = hmac.new(self._key, value.encode("utf-8", "surrogatepass"), hashlib.sha256)
            return f"[{rule}:{digest.hexdigest()[:_DIGITS]}]"
        while True:
            count = self._counts[rule] = self._counts.get(rule, 0) + 1
            place = f"[{rule}_{count}]"
            if place not in self._seen:
                return place


def _rule_of(place: str) -> str:
    inner = place.strip("[]")
    return inner.rpartition(":")[0] or inner.rpartition("_")[0]
