"""Patterns of the user's own for ``Redact``, searched for in stretches of a bounded length."""

from __future__ import annotations

import re
from typing import Any

import attrs

from kantan_agents.errors import InvalidOptionError


@attrs.frozen
class PatternRule:
    """Finds what a regular expression matches.

    A text is cut into blocks of ``longest`` characters. A match that begins in one may look to the end of the
    next; only one that reaches that far is followed further. So the time taken for a text grows with its
    length, however slow the pattern is on a single stretch.

    Attributes:
        pattern: The regular expression.
        longest: How long a block is.
    """

    pattern: re.Pattern[str]
    longest: int

    @classmethod
    def make(cls, pattern: Any, longest: int) -> PatternRule:
        """Return the rule for a pattern, a text or compiled.

        Raises:
            InvalidOptionError: E75, it is no regular expression for texts, or matches nothing at all.
        """
        try:
            compiled = re.compile(pattern)
            matches_nothing = compiled.match("") is not None
        except (re.error, TypeError) as error:
            raise InvalidOptionError(option="rules", reason=f"pattern {pattern!r}: {error}") from None
        if matches_nothing:
            raise InvalidOptionError(option="rules", reason=f"pattern {pattern!r} matches an empty text")
        return cls(compiled, longest)

    def find(self, text: str, start: int, offset: int, *, whole: bool) -> tuple[list[tuple[int, int]], int]:
        """Return the matches in a text, and up to where they are final whatever follows."""
        spans: list[tuple[int, int]] = []
        place = start
        while place < len(text):
            block_end = ((offset + place) // self.longest + 1) * self.longest - offset
            end = block_end + self.longest
            if end > len(text) and not whole:
                return spans, place
            found = self.pattern.search(text, place, min(end, len(text)))
            if found is None or found.start() >= block_end:
                place = min(block_end, len(text))
                continue
            first = found.start()
            while found is not None and found.end() == end < len(text) + (not whole):
                end = first + 2 * (end - first)
                if end > len(text) and not whole:
                    return spans, first
                found = self.pattern.match(text, first, min(end, len(text)))
            if found is None or found.end() == first:
                place = first + 1
                continue
            spans.append((first, found.end()))
            place = found.end()
        return spans, len(text)
