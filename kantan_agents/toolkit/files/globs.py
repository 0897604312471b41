"""Glob patterns as regular expressions of a linear-time engine."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import attrs

from kantan_agents.errors import InvalidPatternError
from kantan_agents.toolkit.files.linear import compiled, escaped

_LONGEST = 1_000
_DEEPEST = 10

_TOKEN = re.compile(
    r"(?P<stars>\*\*+)(?P<slash>/?)|(?P<class>\[[!^]?[^/][^\]]*\])|\\(?P<escaped>.)|(?P<one>.)", re.DOTALL
)
_SIMPLE = {"*": "[^/]*", "?": "[^/]", "{": "(?:", "}": ")"}


@attrs.frozen
class Glob:
    """A compiled glob pattern.

    Attributes:
        pattern: The pattern.
        folder: The literal folders that every match begins with.
        depth: How many names a match has at most; None with ``**``.
    """

    pattern: str
    folder: tuple[str, ...]
    depth: int | None
    _regexp: Any = attrs.field(eq=False, repr=False)

    def matches(self, path: str) -> bool:
        """Return whether a path, relative to where the pattern begins, matches."""
        return self._regexp.fullmatch(as_bytes(path)) is not None


def as_bytes(path: str) -> bytes:
    """Return a path as UTF-8; bytes of the file system that are not, become question marks."""
    return path.encode("utf-8", "replace")


@lru_cache(maxsize=64)
def compiled_glob(pattern: str, *, any_depth: bool = False) -> Glob:
    """Compile a glob pattern: ``*``, ``?``, ``[...]``, ``{a,b}``, and ``**`` for any number of folders.

    Args:
        pattern: The pattern.
        any_depth: Whether a pattern without ``/`` matches a name in any folder, as with ripgrep's ``--glob``.

    Raises:
        InvalidPatternError: E164, it is not a pattern.
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
        regexp = compiled(_translated(text, pattern))
    except ValueError as error:
        if isinstance(error, InvalidPatternError):
            raise
        raise InvalidPatternError(pattern=pattern, reason=str(error)) from error
    folders = segments[:-1]
    literal = next((place for place, one in enumerate(folders) if _is_special(one)), len(folders))
    spans = "**" in text or _spans_folders(text)
    return Glob(pattern, tuple(folders[:literal]), None if spans else len(segments), regexp)


def _spans_folders(text: str) -> bool:
    """Return whether a ``/`` is within braces."""
    depth = 0
    for one in text:
        depth += (one == "{") - (one == "}")
        if one == "/" and depth > 0:
            return True
    return False


def _is_special(segment: str) -> bool:
    return any(one in segment for one in "*?[]{}\\")


def _translated(text: str, pattern: str) -> str:
    out: list[str] = []
    depth = 0
    for token in _TOKEN.finditer(text):
        one = token["one"]
        if token["stars"]:
            out.append(_stars(text, token))
        elif token["class"]:
            out.append(_of_class(token["class"], pattern))
        elif token["escaped"]:
            out.append(_literal(token["escaped"]))
        else:
            depth += (one == "{") - (one == "}")
            if one == "[" or not 0 <= depth <= _DEEPEST:
                reason = f"{one} is not closed, not opened or nested too deeply"
                raise InvalidPatternError(pattern=pattern, reason=reason)
            out.append("|" if one == "," and depth else _SIMPLE.get(one) or _literal(one))
    if depth:
        raise InvalidPatternError(pattern=pattern, reason="{ is not closed")
    return f"(?s){''.join(out)}"


def _stars(text: str, token: re.Match[str]) -> str:
    """Translate two or more stars; they match any number of folders only as a whole step."""
    start, end = token.span("stars")
    is_begin = start == 0 or text[start - 1] in "/{,"
    if is_begin and token["slash"]:
        return "(?:[^/]+/)*"
    if is_begin and (end == len(text) or text[end] in ",}"):
        return ".+"
    return f"[^/]*{token['slash']}"


def _literal(one: str) -> str:
    return one if one.isalnum() or one == "/" else escaped(one)


def _of_class(text: str, pattern: str) -> str:
    """Translate ``[...]``, which never matches the separator."""
    body = text[1:-1]
    is_negated = len(body) > 1 and body[0] in "!^"
    if "/" in body:
        raise InvalidPatternError(pattern=pattern, reason="[...] cannot have a /")
    items = "".join(f"\\{one}" if one in "\\[]^&~|" else one for one in body[is_negated:])
    return f"[^/{items}]" if is_negated else f"[{items}]"
