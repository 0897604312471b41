"""Where a frontmatter ends that no closing line ends."""

from __future__ import annotations

import itertools
import re
from typing import Final

from kantan_agents.definitions.frontmatter.document import MOST_LETTERS, Document
from kantan_agents.definitions.frontmatter.keys import FIELD_OF, LIMITS, PROSE
from kantan_agents.definitions.frontmatter.limits import limit_in, refuse_limit
from kantan_agents.definitions.frontmatter.pieces import KNOWN, SPACES, lines_of

_INSIDE: Final = re.compile(rf"[{SPACES}]|-(?:[{SPACES}]|\Z)|#")
_HEADING: Final = re.compile(r"#{1,6}[ \t]")
_RULE: Final = re.compile(r"[ \t]*(?:[-\u2013\u2014]{2,}|\.{3}|={3,}|\*{3,}|_{3,})[ \t]*[\r\n]*\Z")


def closed(document: Document, *, ruled: bool) -> Document:
    """Return the document with its frontmatter ending where it must end, though no line says so.

    That is before the first blank line that neither a known key, an indented line nor a list item follows,
    or at a line that was meant to close it. A key that limits the tools is never left to the prompt, as long
    as that has no heading.

    Args:
        document: A document whose frontmatter goes on into the prompt.
        ruled: Whether there is a line of dashes below, which may be a rule in the prompt. Then the end
            is found only after a field in which nobody writes sentences, and with no known key below.

    Raises:
        RefusedYamlError: A line of the prompt looks like a limit on tools that is nowhere else.
    """
    front = document.front
    finder = _Finder(ruled=ruled)
    lines = [*lines_of(front[:MOST_LETTERS]), ("", 0, 0)]
    for (line, start, after), (following, _, beyond) in itertools.pairwise(lines):
        if not finder.look(line, (start, after), following, beyond):
            break
    if finder.end is None:
        return document
    finder.refuse()
    at, begin = finder.end
    prompt = front[begin:] + (document.tail or "") + document.prompt
    return Document(head=document.head, front=front[:at], line=document.line, tail=None, prompt=prompt)


class _Finder:
    """Looks at one line after another for the end of the frontmatter.

    Attributes:
        end: Where the frontmatter ends and the prompt begins, as far as the lines so far say.
    """

    def __init__(self, *, ruled: bool) -> None:
        self.end: tuple[int, int] | None = None
        self._ruled = ruled
        self._read: set[str | None] = set()
        self._in_prose = True
        self._blank: tuple[int, int] | None = None
        self._has_heading = False
        self._doubtful: list[tuple[str, int]] = []

    def look(self, line: str, place: tuple[int, int], following: str, beyond: int) -> bool:
        """Take the next line, with the one after it and where that ends; return whether to go on."""
        key = KNOWN.match(line)
        field = FIELD_OF[key[1]] if key else None
        if self.end is None:
            self._look_in_front(line, place, field, following, beyond)
        if self.end is not None:
            self._look_in_prompt(line, place[0], field, following)
        return self.end is None or self._ruled or not self._has_heading

    def refuse(self) -> None:
        """Refuse lines of the prompt that may be limits which stand nowhere else."""
        for line, index in self._doubtful:
            refuse_limit(line, self._read, index)

    def _look_in_front(
        self, line: str, place: tuple[int, int], field: str | None, following: str, beyond: int
    ) -> None:
        if field:
            self._take(field)
        elif not line.strip():
            self._blank = self._blank or place
        elif self._blank and not _INSIDE.match(line) and not (self._ruled and self._in_prose):
            self.end = self._blank
        elif self._read and not self._ruled and _RULE.match(line) and self._may_close(following):
            # Such as two dashes, or three dots. The blank line below is no part of the prompt, as ever.
            self.end = (place[0], place[1] if following.strip() else max(beyond, place[1]))
        else:
            self._blank = None

    def _may_close(self, following: str) -> bool:
        return not self._in_prose or not following.strip()

    def _look_in_prompt(self, line: str, index: int, field: str | None, following: str) -> None:
        is_limit = field in LIMITS and field not in self._read
        if (is_limit and not self._has_heading) or (field and self._ruled):
            self._take(field)
        elif _HEADING.match(line):
            # A comment stands right above its key.
            key = KNOWN.match(following)
            self._has_heading = self._has_heading or not (key and FIELD_OF[key[1]] in LIMITS)
        elif not self._has_heading and not line.startswith((" ", "\t", "-")):
            limit = limit_in(line)
            if limit and limit not in self._read:
                if self._ruled:
                    self._take(None)
                else:
                    self._doubtful.append((line, index))

    def _take(self, field: str | None) -> None:
        """Let the frontmatter go on to here at least."""
        self.end = self._blank = None
        self._has_heading = False
        self._in_prose = field in PROSE
        self._read.add(field)
