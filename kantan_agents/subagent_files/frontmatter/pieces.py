"""Splits invalid frontmatter into fields at its keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import attrs

from kantan_agents.subagent_files.frontmatter.keys import FIELD_OF, LIMITS, PROSE, field_of

SPACES: Final = " \t\u00a0\u202f"
DIALOGUE: Final = frozenset(
    {"user", "assistant", "system", "human", "context", "commentary", "example", "examples", "note"}
)
"""Words that are labels in a description and not keys."""


def _one_of(keys: Iterator[str]) -> str:
    return "|".join(sorted(map(re.escape, keys), key=len, reverse=True))


KNOWN: Final = re.compile(rf"({_one_of(iter(FIELD_OF))})[{SPACES}]*:")

_LIMITS: Final = _one_of(key for key, field in FIELD_OF.items() if field in LIMITS)
_QUOTED: Final = re.compile(rf"([\"'])({_LIMITS})\1[{SPACES}]*:")
_SPELLED: Final = re.compile(rf"([A-Za-z](?:[A-Za-z_-]|[{SPACES}](?=[A-Za-z]))*)[{SPACES}]*:")
UNKNOWN: Final = re.compile(rf"([A-Za-z_][A-Za-z0-9_.-]*)[{SPACES}]*:(?=[{SPACES}\r\n]|\Z)")

# Keys of Claude Code and of well-known collections that end a description. Words that are also labels in
# prose count only with a value that looks like data.
_ENDING: Final = re.compile(
    r"(isolation|tags|author|license|metadata|created|updated|argument-hint|when_to_use|whenToUse|subagents"
    r"|omitClaudeMd"
    r"|(?:background|disabled|proactive)(?=:[ \t]+(?:true|false)[ \t]*(?:[\r\n#]|\Z))"
    r"|(?:temperature|priority|domain)(?=:[ \t]+[\w.-]+[ \t]*(?:[\r\n]|\Z))"
    r"|(?:triggers|capabilities)(?=:[ \t]*\[)"
    r"):(?=[ \t\r\n]|\Z)"
)
_DIALOGUE_LINE: Final = re.compile(rf"(?:user|assistant|human|system)[{SPACES}]*:", re.IGNORECASE)
_BLOCK: Final = re.compile(r"[ \t]*[|>][-+0-9]{0,2}[ \t]*(?:#.*)?[\r\n]*\Z")
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|\Z)")


@attrs.frozen
class Piece:
    """Consecutive lines of one field; comments and lines without a key have no ``key``.

    ``colon`` is the index after the colon.
    """

    key: str | None
    start: int
    colon: int
    end: int


@attrs.frozen
class Pieces:
    """The pieces of a frontmatter, and warnings as (index, message)."""

    pieces: list[Piece]
    warnings: list[tuple[int, str]]


def split_fields(front: str) -> Pieces:
    """Return the fields of a frontmatter, and the lines before and between them.

    Only a known key at column 0 ends unindented prose, so that a description may contain lines such as
    ``user: ...``.
    """
    lines = list(lines_of(front))
    matches = (KNOWN.match(line) for line, _, _ in lines)
    splitter = _Splitter(frozenset(FIELD_OF[match[1]] for match in matches if match))
    starts: list[tuple[str | None, int, int]] = []
    for (line, start, _), next_line in zip(lines, _next_lines(lines), strict=True):
        found = splitter.match_field(line, start, next_line)
        if found:
            starts.append((found[0], start, start + found[1]))
        elif not starts:
            starts.append((None, start, start))
    ends = [start for _, start, _ in starts[1:]]
    pieces = [_split_comments(front, Piece(*begin, end)) for begin, end in zip(starts, ends, strict=False)]
    last = [[Piece(*starts[-1], len(front))]] if starts else []
    return Pieces([piece for parts in pieces + last for piece in parts], splitter.warnings)


def has_known_key(front: str) -> bool:
    """Return whether a line starts with a known key."""
    return any(KNOWN.match(line) for line, _, _ in lines_of(front))


def lines_of(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield each line with its line end, start and end index."""
    for found in _LINE.finditer(text):
        if found[0]:
            yield found[0], found.start(), found.end()


class _Splitter:
    def __init__(self, known: frozenset[str]) -> None:
        self.known = known
        self.warnings: list[tuple[int, str]] = []
        self._field: str | None = None
        self._in_prose = False
        self._has_name = False
        # The indented block: "" for none, "expected" after its key, "inside" in its lines.
        self._block = ""

    def match_field(self, line: str, index: int, next_line: str) -> tuple[str, int] | None:
        """Return the key at the start of a line, and the length up to its value."""
        found = self._key(line, index, next_line)
        if found is None:
            self._follow_block(line)
            return None
        key, colon = found
        self._field = field_of(key)
        self._in_prose = self._field in PROSE or self._field == "context"
        self._has_name = self._has_name or self._field == "name"
        self._block = "expected" if self._in_prose and _BLOCK.match(line, colon) else ""
        return found

    def _key(self, line: str, index: int, next_line: str) -> tuple[str, int] | None:
        known = KNOWN.match(line)
        if known:
            return (known[1], known.end()) if self._is_field(known[1], index, next_line) else None
        quoted = _QUOTED.match(line)
        if quoted:
            return quoted[2], quoted.end()
        spelled = _SPELLED.match(line)
        field = field_of(spelled[1]) if spelled else None
        # If the file has that key as well, `Tools: ...` belongs to the description.
        if spelled and field and not (self._in_prose and field in self.known):
            return spelled[1], spelled.end()
        ending = _ENDING.match(line)
        if ending:
            return ending[1], ending.end()
        unknown = UNKNOWN.match(line) if self._ends_at_any_key(line) else None
        return (unknown[1], unknown.end()) if unknown else None

    def _is_field(self, key: str, index: int, next_line: str) -> bool:
        if self._field not in PROSE:
            return True
        if key == "name" and self._has_name:
            self.warnings.append((index, f"name: appears twice; this one is read as part of {self._field}"))
            return False
        return key != "context" or not _DIALOGUE_LINE.match(next_line)

    def _ends_at_any_key(self, line: str) -> bool:
        if not self._in_prose:
            return True
        is_over = self._block == "inside" and not line.startswith((" ", "\t", "#"))
        return is_over and line.partition(":")[0].strip(SPACES).lower() not in DIALOGUE

    def _follow_block(self, line: str) -> None:
        if self._block and line.strip() and not line.startswith("#"):
            self._block = "inside" if line.startswith((" ", "\t")) else ""


def _next_lines(lines: list[tuple[str, int, int]]) -> list[str]:
    found, next_line = [], ""
    for line, _, _ in reversed(lines):
        found.append(next_line)
        next_line = line if line.strip() else next_line
    return found[::-1]


def _split_comments(front: str, piece: Piece) -> list[Piece]:
    if piece.key is None:
        return [piece]
    end = piece.end
    for line, start, _ in reversed(list(lines_of(front[piece.start : piece.end]))):
        if start == 0 or not line.startswith("#"):
            break
        end = piece.start + start
    rest = [Piece(None, end, end, piece.end)] if end < piece.end else []
    return [attrs.evolve(piece, end=end), *rest]
