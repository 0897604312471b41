"""Reads and decodes a file, and splits it."""

from __future__ import annotations

import bisect
import errno
import functools
import os
import re
import stat
from pathlib import Path
from typing import Final

import attrs

from kantan_agents.errors import AgentFileError

MAX_BYTES: Final = 4 * 1024 * 1024

MAX_FRONTMATTER_CHARS: Final = 256 * 1024
"""Bounded, so that one file cannot delay the loading of all others."""

_BREAK: Final = r"(?:\r\n|\n|\r)"
OPENING: Final = re.compile(rf"(?:[ \t]*{_BREAK})*-{{3,}}[ \t]*({_BREAK}|\Z)")

_KEY: Final = re.compile(r"[ \t]*(?:name|description)[ \t]*:")
_HEAD_BYTES: Final = 4096
_CLOSING: Final = re.compile(rf"(?:\A|(?<=[\n\r]))-{{3,}}[ \t]*({_BREAK}|\Z)")
_BLANK: Final = re.compile(rf"[ \t]*{_BREAK}")
_LINE_END: Final = re.compile(_BREAK)
_FLAGS: Final = (
    os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)


@attrs.frozen(slots=False)
class Document:
    """The parts of a file; ``line`` is the first line of ``front``, from 1."""

    head: str
    front: str
    line: int
    tail: str | None
    prompt: str

    def line_at(self, index: int) -> int:
        """Return the line of the file for an index in ``front``."""
        return self.line + bisect.bisect_right(self._breaks, index)

    @functools.cached_property
    def _breaks(self) -> list[int]:
        return [found.end() for found in _LINE_END.finditer(self.front)]


def lines_before(text: str, index: int) -> int:
    """Return how many lines end before ``index``."""
    return len(_LINE_END.findall(text[:index]))


def read_regular_file(path: str, limit: int) -> tuple[bytes, os.stat_result]:
    """Read a regular file: a pipe may block forever, and opening a device has effects.

    Follows links. The returned status of the opened file is from before the read.
    """
    # Before, because opening alone can have an effect, and after, because the path may lead elsewhere by
    # then.
    _check_regular(os.stat(path), path)  # noqa: PTH116 - a Path would double the cost
    with open(os.open(path, _FLAGS), "rb") as file:  # noqa: PTH123 - the flags
        status = os.fstat(file.fileno())
        _check_regular(status, path)
        return file.read(limit), status


def _check_regular(status: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "is not a regular file", path)


def read_file(path: Path) -> bytes:
    """Return the bytes of a subagent file."""
    try:
        return read_regular_file(os.fspath(path), MAX_BYTES + 1)[0]
    except OSError as error:
        raise AgentFileError(path=path, reason=error.strerror or str(error)) from error
    except ValueError as error:
        # The path contains a null character.
        raise AgentFileError(path=path, reason=str(error)) from error


def decode(text: str | bytes, path: Path | None) -> str:
    """Return the content of a file, without its BOM."""
    size = len(text) if isinstance(text, bytes) else len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        raise AgentFileError(path=path, reason=f"is larger than {MAX_BYTES // 1024 // 1024} MiB")
    try:
        decoded = text.decode() if isinstance(text, bytes) else text.encode().decode()
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode()
        line = 1 + lines_before(before, len(before))
        raise AgentFileError(
            path=path, line=line, reason=f"byte {error.start} is not valid UTF-8 ({error.reason})"
        ) from error
    except UnicodeEncodeError as error:
        line = 1 + lines_before(error.object, error.start)
        reason = f"character {error.start} is not valid Unicode (a lone surrogate)"
        raise AgentFileError(path=path, line=line, reason=reason) from error
    return decoded.removeprefix("\ufeff")


def lacks_frontmatter(data: bytes) -> bool:
    """Return whether a file is ordinary Markdown, such as a README.

    A file in another encoding is meant as an agent, and so is one that lacks only the opening line.
    """
    head = data[:_HEAD_BYTES]
    text = head.decode("utf-8", "replace").removeprefix("\ufeff")
    if b"\0" in head or OPENING.match(text):
        return False
    for number, line in enumerate(_LINE_END.split(text.lstrip())):
        if _KEY.match(line):
            return False
        if line.startswith("#") or (number and line.startswith("```")):
            return True
    return True


def split_document(text: str, path: Path | None) -> Document:
    """Return the parts of a file.

    One blank line after the closing line is a separator and not part of the prompt.
    """
    opening = OPENING.match(text)
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
