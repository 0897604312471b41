"""A file's bytes: how they are read, and where the frontmatter ends and the prompt begins."""

from __future__ import annotations

import bisect
import functools
import os
import re
from pathlib import Path
from typing import Final

import attrs

from kantan_agents.definitions.frontmatter.regular_file import read_regular_file
from kantan_agents.errors import AgentFileError

MAX_BYTES: Final = 4 * 1024 * 1024
"""A file larger than this is no agent file."""

MOST_LETTERS: Final = 256 * 1024
"""A frontmatter longer than this is not read: one file must not hold up all the others."""

_BREAK: Final = r"(?:\r\n|\n|\r)"
_OPENING: Final = re.compile(rf"(?:[ \t]*{_BREAK})*-{{3,}}[ \t]*({_BREAK}|\Z)")
_CLOSING: Final = re.compile(rf"(?:\A|(?<=[\n\r]))-{{3,}}[ \t]*({_BREAK}|\Z)")
_BLANK: Final = re.compile(rf"[ \t]*{_BREAK}")
_LINE_END: Final = re.compile(_BREAK)


@attrs.frozen(slots=False)
class Document:
    """The parts of a file.

    Attributes:
        head: Everything up to the first character of the frontmatter (without a BOM).
        front: The text between the two lines of dashes.
        line: The line of the file ``front`` begins in, from 1 on.
        tail: The closing line with the blank line after it; None where there is no closing line.
        prompt: What comes after.
    """

    head: str
    front: str
    line: int
    tail: str | None
    prompt: str

    def line_at(self, index: int) -> int:
        """Return the line of the file in which the character ``index`` of ``front`` stands."""
        return self.line + bisect.bisect_right(self._breaks, index)

    @functools.cached_property
    def _breaks(self) -> list[int]:
        return [found.end() for found in _LINE_END.finditer(self.front)]


def lines_before(text: str, index: int) -> int:
    """Return how many lines end before the character ``index`` of ``text``."""
    return len(_LINE_END.findall(text[:index]))


def read_file(path: Path) -> bytes:
    """Return the bytes of an agent file.

    Raises:
        AgentFileError: E30; it is missing, unreadable, no regular file or larger than `MAX_BYTES`.
    """
    try:
        return read_regular_file(os.fspath(path), MAX_BYTES + 1)[0]
    except OSError as error:
        raise AgentFileError(path=path, reason=error.strerror or str(error)) from error
    except ValueError as error:
        # A path with a null character in it.
        raise AgentFileError(path=path, reason=str(error)) from error


def decoded(text: str | bytes, path: Path | None) -> str:
    """Return the text of a file, without its BOM.

    Raises:
        AgentFileError: E30; it is larger than `MAX_BYTES` or no UTF-8.
    """
    size = len(text) if isinstance(text, bytes) else len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        raise AgentFileError(path=path, reason=f"is larger than {MAX_BYTES // 1024 // 1024} MiB")
    try:
        decoded = text.decode() if isinstance(text, bytes) else text.encode().decode()
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode()
        line = 1 + lines_before(before, len(before))
        raise AgentFileError(
            path=path, line=line, reason=f"byte {error.start} is no UTF-8 ({error.reason})"
        ) from error
    except UnicodeEncodeError as error:
        line = 1 + lines_before(error.object, error.start)
        reason = f"character {error.start} is no Unicode (a lone surrogate)"
        raise AgentFileError(path=path, line=line, reason=reason) from error
    return decoded.removeprefix("\ufeff")


def split(text: str, path: Path | None) -> Document:
    """Return the parts of a file's text.

    One blank line after the closing line separates and is no part of the prompt.

    Raises:
        AgentFileError: E30; the first line is no line of dashes.
    """
    opening = _OPENING.match(text)
    if opening is None:
        raise AgentFileError(path=path, reason="has no frontmatter: its first line is not '---'")
    start = opening.end()
    line = 1 + lines_before(text, start)
    closing = _CLOSING.search(text, start) if opening[1] else None
    if closing is None:
        return Document(head=text[:start], front=text[start:], line=line, tail=None, prompt="")
    blank = _BLANK.match(text, closing.end())
    end = blank.end() if blank else closing.end()
    return Document(
        head=text[:start],
        front=text[start : closing.start()],
        line=line,
        tail=text[closing.start() : end],
        prompt=text[end:],
    )
