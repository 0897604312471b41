"""The input of all of the user's chats."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Final

import attrs

from kantan_agents.cli.terminal.plain import whole
from kantan_agents.support.private_files import open_private
from kantan_agents.support.secrets import mask

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

MOST: Final = 1000
"""Entries that are read; the file has at most twice as many."""

_MOST_BYTES: Final = 1_000_000
_LONGEST: Final = 20_000
_FLAGS: Final = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


@attrs.frozen
class Entry:
    """One input, ``at`` seconds since 1970."""

    at: float
    text: str


@attrs.frozen
class HistoryFile:
    """A file with one JSON line per entry, the latest last, that only its owner may read.

    Several chats may share it. It is changed in place: a sandbox that hides it from commands would not hide a
    new file of this name. Methods block on the disk. They raise ``OSError`` if it is not a plain file of the
    user.
    """

    path: Path

    def create(self) -> None:
        """Create the file, without waiting for other chats."""
        self._open().close()

    def read(self) -> list[Entry]:
        """Return the entries, oldest first, without damaged lines."""
        with self._locked() as file:
            return [entry for _, entry in _entries(_end_of(file).split(b"\n"))][-MOST:]

    def add(self, entry: Entry) -> bool:
        """Store an entry and remove the oldest above the limit, or leave the file unchanged on an error.

        Returns:
            False for an entry with a leading space, a very long one, or one with a probable secret.
        """
        line = json.dumps((entry.at, whole(entry.text))).encode() + b"\n"
        if entry.text[:1].isspace() or len(line) > _LONGEST or mask(entry.text) != entry.text:
            return False
        with self._locked() as file:
            before = _end_of(file)
            if before and not before.endswith(b"\n"):  # a process was killed while it wrote
                line = b"\n" + line
            size = file.seek(0, os.SEEK_END)
            if size + len(line) > _MOST_BYTES or before.count(b"\n") >= 2 * MOST:
                self._shorten(file, before + line)
            elif file.write(line) < len(line):
                file.truncate(size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return True

    def clear(self) -> None:
        """Remove all entries."""
        with self._locked() as file:
            file.truncate(0)

    @staticmethod
    def _shorten(file: FileIO, content: bytes) -> None:
        kept: list[bytes] = []
        size = 0
        for line, _ in _entries(reversed(content.split(b"\n"))):
            size += len(line) + 1
            if len(kept) == MOST or size > _MOST_BYTES // 2:
                break
            kept.append(line + b"\n")
        # Written before truncation: a crash in between repeats old entries but loses none.
        file.seek(0)
        file.write(b"".join(reversed(kept)))
        file.truncate()

    def _open(self) -> FileIO:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.path.is_symlink():
            raise OSError("it is a link")
        file = FileIO(open_private(self.path, _FLAGS), "r+")
        found = os.fstat(file.fileno())
        is_own = not hasattr(os, "geteuid") or found.st_uid == os.geteuid()
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1 or not is_own:
            file.close()
            raise OSError("it is not a plain file of yours")
        if fcntl is not None:
            os.fchmod(file.fileno(), 0o600)
        return file

    @contextmanager
    def _locked(self) -> Iterator[FileIO]:
        with self._open() as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            yield file


def _end_of(file: FileIO) -> bytes:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _MOST_BYTES))
    return file.read(_MOST_BYTES) or b""


def _entries(lines: Iterable[bytes]) -> Iterator[tuple[bytes, Entry]]:
    for line in lines:
        try:
            at, text = json.loads(line)
        except (ValueError, TypeError, RecursionError):
            continue
        if isinstance(at, float | int) and isinstance(text, str) and text:
            yield line, Entry(at, text)
