"""Placeholders such as ``[email_1]``, and their values."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from typing import Literal

Mode = Literal["mask", "hash", "block"]

_DIGITS = 16


class Placeholders:
    """Finds ``[email]``, ``[email_1]`` or ``[email:9f86d081884c7d65]``."""

    def __init__(self, names: Iterable[str]) -> None:
        known = "|".join(map(re.escape, names))
        self._pattern = re.compile(rf"\[(?:{known})(?:_[0-9]{{1,9}}|:[0-9a-f]{{{_DIGITS}}})?\]")
        self._longest = max(map(len, names)) + _DIGITS + 3
        self._beginning = re.compile(r"\[[A-Za-z0-9_:]*")

    def find(self, text: str, start: int, *, whole: bool) -> tuple[list[tuple[int, int]], int]:
        """Return spans, and the index up to which more text cannot change them."""
        final = len(text)
        if not whole:
            bracket = text.rfind("[", max(start, final - self._longest))
            if bracket >= 0 and self._beginning.fullmatch(text, bracket) is not None:
                final = bracket
        return [found.span() for found in self._pattern.finditer(text, start)], final

    def replace(self, text: str, change: Callable[[str], str]) -> str:
        """Apply ``change`` to each placeholder."""
        return self._pattern.sub(lambda found: change(found[0]), text) if "[" in text else text


class Replacements:
    """The placeholders and values of one run."""

    def __init__(self, mode: Mode, key: bytes, *, numbered: bool, values: MutableMapping[str, str]) -> None:
        self._mode = mode
        self._key = key
        self._numbered = numbered
        self._values = values
        self._known = {(_rule_of(place), value): place for place, value in values.items()}
        self._used: set[str] = set(values)
        self._counts: dict[str, int] = {}

    def place_for(self, rule: str, value: str) -> str:
        """Equal values get the same placeholder."""
        if self._mode == "mask" and not self._numbered:
            return f"[{rule}]"
        known = self._known.get((rule, value))
        if known is None:
            known = self._known[rule, value] = self._new(rule, value)
            if self._numbered:
                self._values[known] = value
                self._used.add(known)
        return known

    def mark_used(self, place: str) -> None:
        """No other value may get an earlier run's placeholder."""
        self._used.add(place)

    def learn(self, values: Mapping[str, str]) -> None:
        """Add values from an earlier process."""
        for place, value in values.items():
            self._values[place] = value
            self._known[_rule_of(place), value] = place
            self._used.add(place)

    def value_of(self, place: str) -> str:
        """Return the placeholder itself if it is unknown."""
        return self._values.get(place, place)

    def _new(self, rule: str, value: str) -> str:
        if self._mode == "hash":
            digest = hmac.new(self._key, value.encode("utf-8", "surrogatepass"), hashlib.sha256)
            return f"[{rule}:{digest.hexdigest()[:_DIGITS]}]"
        while True:
            count = self._counts[rule] = self._counts.get(rule, 0) + 1
            place = f"[{rule}_{count}]"
            if place not in self._used:
                return place


def _rule_of(place: str) -> str:
    inner = place.strip("[]")
    return inner.rpartition(":")[0] or inner.rpartition("_")[0]
