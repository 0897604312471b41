"""Finds the end of a frontmatter without a closing line."""

from __future__ import annotations

import itertools
import re
from typing import Final

import attrs

from kantan_agents.subagent_files.frontmatter.document import MAX_FRONTMATTER_CHARS, Document
from kantan_agents.subagent_files.frontmatter.keys import FIELD_OF, LIMITS, PROSE
from kantan_agents.subagent_files.frontmatter.limits import limit_in, refuse_limit
from kantan_agents.subagent_files.frontmatter.pieces import KNOWN, SPACES, UNKNOWN, lines_of

_BELOW_THE_END: Final = (
    "this line looks like {key}, but the frontmatter seems to end above it; "
    "write the closing line '---' where the frontmatter ends"
)
_INSIDE: Final = re.compile(rf"[{SPACES}]|-(?:[{SPACES}]|\Z)|#")
_HEADING: Final = re.compile(r"#{1,6}[ \t]")
_RULE: Final = re.compile(r"[ \t]*(?:[-\u2013\u2014]{2,}|\.{3}|={3,}|\*{3,}|_{3,})[ \t]*[\r\n]*\Z")


def end_frontmatter(document: Document, *, has_dash_line: bool) -> Document:
    """Return the document, split where its frontmatter most probably ends.

    A key that limits the tools stays in the frontmatter, or the file is rejected. With ``has_dash_line``, a
    line of dashes follows, perhaps a horizontal rule.
    """
    front = document.front
    finder = _EndFinder(has_dash_line=has_dash_line)
    lines = [*lines_of(front[:MAX_FRONTMATTER_CHARS]), ("", 0, 0)]
    texts = _next_texts([line for line, _, _ in lines])
    for ((line, start, end), (next_line, _, next_end)), text in zip(
        itertools.pairwise(lines), texts, strict=False
    ):
        finder.feed(line, (start, end), _Ahead(next_line, next_end, *text))
    if finder.end is None:
        return document
    finder.refuse_suspects()
    front_end, prompt_start = finder.end
    prompt = front[prompt_start:] + (document.tail or "") + document.prompt
    return Document(head=document.head, front=front[:front_end], line=document.line, tail=None, prompt=prompt)


@attrs.frozen
class _Ahead:
    line: str
    end: int
    text: str
    is_text_adjacent: bool


def _next_texts(lines: list[str]) -> list[tuple[str, bool]]:
    texts, text, is_adjacent = [], "", False
    for line in reversed(lines):
        texts.append((text, is_adjacent))
        if not line.strip():
            is_adjacent = False
        elif not line.startswith("#"):
            text, is_adjacent = line, True
    return texts[::-1]


class _EndFinder:
    """Looks for the end of the frontmatter, line by line."""

    def __init__(self, *, has_dash_line: bool) -> None:
        self.end: tuple[int, int] | None = None
        self._has_dash_line = has_dash_line
        self._fields: set[str | None] = set()
        self._field: str | None = None
        self._in_prose = True
        self._blank: tuple[int, int] | None = None
        self._has_heading = False
        self._suspects: list[tuple[str, int]] = []

    def feed(self, line: str, span: tuple[int, int], ahead: _Ahead) -> None:
        key = KNOWN.match(line)
        field = FIELD_OF[key[1]] if key else None
        if self.end is None:
            self._feed_front(line, span, field, ahead)
            if self.end is not None and line.startswith("#"):
                return
        if self.end is not None:
            self._feed_prompt(line, span[0], field, ahead.line)

    def refuse_suspects(self) -> None:
        """Reject lines of the prompt that may limit tools, unless the frontmatter does."""
        for line, index in self._suspects:
            refuse_limit(line, self._fields, index, reason=_BELOW_THE_END)

    def _feed_front(self, line: str, span: tuple[int, int], field: str | None, ahead: _Ahead) -> None:
        if field:
            self._extend(field)
        elif not line.strip():
            self._blank = self._blank or span
        elif line.startswith("#"):
            if self._fields and self._is_heading(ahead):
                self.end = self._blank or (span[0], span[0])
            self._blank = None
        elif self._blank and not _INSIDE.match(line) and not (self._has_dash_line and self._in_prose):
            self.end = self._blank
        elif self._fields and not self._has_dash_line and _RULE.match(line) and self._may_close(ahead.line):
            # Such as two dashes or three dots. A blank line after it separates, as usual.
            self.end = (span[0], span[1] if ahead.line.strip() else max(ahead.end, span[1]))
        else:
            self._blank = None

    def _is_heading(self, ahead: _Ahead) -> bool:
        text = ahead.text
        key = KNOWN.match(text)
        if not text or (key and (ahead.is_text_adjacent or FIELD_OF[key[1]] in LIMITS)):
            return False
        if self._has_dash_line and (self._in_prose or not self._blank or UNKNOWN.match(text)):
            return False
        # In a list of denied tools it may be a comment, with more denied tools below.
        return self._field != "disallowed_tools" or not _INSIDE.match(text)

    def _may_close(self, next_line: str) -> bool:
        return not self._in_prose or not next_line.strip()

    def _feed_prompt(self, line: str, index: int, field: str | None, next_line: str) -> None:
        is_limit = field in LIMITS and field not in self._fields
        if (is_limit and not self._has_heading) or (field and self._has_dash_line):
            self._extend(field)
        elif _HEADING.match(line):
            # Directly above a tools key it is a comment.
            key = KNOWN.match(next_line)
            self._has_heading = self._has_heading or not (key and FIELD_OF[key[1]] in LIMITS)
        elif not line.startswith((" ", "\t", "-")):
            limit = limit_in(line)
            if limit and limit not in self._fields:
                if self._has_dash_line and not self._has_heading:
                    self._extend(None)
                else:
                    self._suspects.append((line, index))

    def _extend(self, field: str | None) -> None:
        self.end = self._blank = None
        self._has_heading = False
        self._in_prose = field in PROSE
        self._field = field
        self._fields.add(field)
