"""Regular expressions of the linear-time engine RE2."""

from __future__ import annotations

from typing import Any

import attrs

from kantan_agents.errors import InvalidPatternError
from kantan_agents.toolkit.files.linear import compiled

_LONGEST = 5_000
_LARGEST = 50_000  # instructions of a program

# RE2 is slower for patterns with very many states: at worst 200 million steps a second.
_STEPS_AT_ONCE = 200_000_000
_STEPS_OF_A_FILE = 2_000_000_000
_SMALLEST_BLOCK = 4_096
_LARGEST_BLOCK = 1 << 20
_LARGEST_WHOLE_FILE = 16 << 20


@attrs.frozen
class SearchPattern:
    """A compiled pattern for UTF-8 bytes."""

    regexp: Any
    is_multiline: bool

    @property
    def block(self) -> int:
        """Bytes of one step, so that a canceled search ends within a second."""
        return max(_SMALLEST_BLOCK, min(_LARGEST_BLOCK, _STEPS_AT_ONCE // self._size))

    @property
    def largest_file(self) -> int | None:
        """Size limit of a searched file in bytes."""
        if not self.is_multiline:
            return None
        return min(_LARGEST_WHOLE_FILE, _STEPS_OF_A_FILE // self._size)

    @property
    def _size(self) -> int:
        return int(self.regexp.programsize)


def compiled_pattern(pattern: str, *, ignore_case: bool, multiline: bool) -> SearchPattern:
    """Compile an expression in RE2 syntax; raise E164.

    With ``multiline``, ``.`` and classes match line ends.
    """
    if len(pattern) > _LONGEST:
        raise InvalidPatternError(pattern=pattern[:100], reason=f"it has more than {_LONGEST:,} characters")
    try:
        regexp = compiled(
            f"(?m){pattern}", case_sensitive=not ignore_case, never_nl=not multiline, dot_nl=multiline
        )
    except ValueError as error:
        reason = str(error)
        if reason.startswith(("invalid perl operator", "invalid escape sequence")):
            reason += " (the syntax is that of RE2, without look-around and back-references)"
        raise InvalidPatternError(pattern=_shown(pattern), reason=reason) from error
    if regexp.programsize > _LARGEST:
        raise InvalidPatternError(pattern=pattern, reason="it is too large: use smaller repetitions")
    return SearchPattern(regexp, multiline)


def _shown(pattern: str) -> str:
    return pattern.encode("utf-8", "replace").decode()
