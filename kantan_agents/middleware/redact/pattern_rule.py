"""``PatternRule``: finds what a user's regular expression matches."""

from __future__ import annotations

import re
from typing import Any

import attrs

from kantan_agents.errors import InvalidOptionError


@attrs.frozen
class PatternRule:
    """Finds the matches of a regular expression.

    The text is searched in blocks of ``longest`` characters. A match that starts in one block may extend to
    the end of the next; only a match that reaches that end is extended further. The running time therefore
    grows linearly with the text, even if the pattern is slow within a block.

    Attributes:
        pattern: The regular expression.
        longest: Length of a block in characters.
    """

    pattern: re.Pattern[str]
    longest: int

    @classmethod
    def make(cls, pattern: Any, longest: int) -> PatternRule:
        """Return the rule for a pattern, given as a str or compiled.

        Raises:
            InvalidOptionError: E75, the pattern is not a regular expression for str, or it matches an
                empty text.
        """
        try:
            compiled = re.compile(pattern)
            matches_empty = compiled.match("") is not None
        except (re.error, TypeError) as error:
            raise InvalidOptionError(option="rules", reason=f"pattern {pattern!r}: {error}") from None
        if matches_empty:
            raise InvalidOptionError(option="rules", reason=f"pattern {pattern!r} matches an empty text")
        return cls(compiled, longest)

    def find(self, text: str, start: int, offset: int, *, whole: bool) -> tuple[list[tuple[int, int]], int]:
        """Return the matches, and the index up to which more text cannot change them."""
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
