"""Glob patterns as regular expressions of a linear-time engine."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import attrs

from kantan_agents.errors import InvalidPatternError
from kantan_agents.toolkit.files.glob_syntax import translated
from kantan_agents.toolkit.files.ignore import as_bytes
from kantan_agents.toolkit.files.linear import compiled

_LONGEST = 1_000


@attrs.frozen
class Glob:
    """A compiled glob pattern; every match is in ``folder``. With ``**``, ``depth`` is None."""

    pattern: str
    folder: tuple[str, ...]
    depth: int | None
    _regexp: Any = attrs.field(eq=False, repr=False)

    def matches(self, path: str) -> bool:
        """Match a path relative to the start folder."""
        return self._regexp.fullmatch(as_bytes(path)) is not None


@lru_cache(maxsize=64)
def compiled_glob(pattern: str, *, any_depth: bool = False) -> Glob:
    """Compile a glob pattern.

    With ``any_depth``, a pattern without ``/`` matches in any folder, as ripgrep's ``--glob`` does.
    """
    text = "/".join(step for step in pattern.split("/") if step not in ("", "."))
    if any_depth and "/" not in pattern.rstrip("/"):
        text = f"**/{text}"
    if not text or len(text) > _LONGEST:
        raise InvalidPatternError(
            pattern=pattern[:_LONGEST], reason=f"it must have 1 to {_LONGEST:,} characters"
        )
    segments = text.split("/")
    if ".." in segments:
        reason = "it cannot have a step '..': name the folder with path"
        raise InvalidPatternError(pattern=pattern, reason=reason)
    try:
        regexp = compiled(translated(text))
    except ValueError as error:
        raise InvalidPatternError(pattern=pattern, reason=str(error)) from error
    folders = segments[:-1]
    literal = next((place for place, one in enumerate(folders) if _is_special(one)), len(folders))
    spans = "**" in text or _spans_folders(text)
    return Glob(pattern, tuple(folders[:literal]), None if spans else len(segments), regexp)


def _spans_folders(text: str) -> bool:
    depth = 0
    for one in text:
        depth += (one == "{") - (one == "}")
        if one == "/" and depth > 0:
            return True
    return False


def _is_special(segment: str) -> bool:
    return any(one in segment for one in "*?[]{}\\")
