"""Finds the repositories that a git index contains; ``git status`` runs in them.

Runs also in the process of ``supervisor.py``, with the standard library only.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterator
from contextlib import suppress

MOST_LINKS = 500
_MOST_BYTES = 128 * 1024 * 1024
_MODE = struct.pack(">I", 0o160000)
_BEFORE_MODE = 24
_HASHES = (20, 32)  # bytes of SHA-1 and SHA-256
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_COMPRESSED = 4
_LONGEST = 65_536
_IS_EXTENDED = 0x4000
_NEVER = frozenset((b"", b".", b"..", b".git"))  # git rejects a path with one of these names


def gitlinks(index: str) -> list[str] | None:
    """Return other repositories in an index and its shared part; None if too large."""
    found: dict[str, None] = {}
    folder = os.path.dirname(index)
    shared: list[str] = []
    with suppress(OSError):
        shared = [f"{folder}/{name}" for name in os.listdir(folder) if name.startswith("sharedindex.")]
    for file in (index, *shared):
        data = content_of(file, _MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            return None
        for size in _HASHES if _MODE in data else ():
            with suppress(IndexError, ValueError, struct.error):
                for name in _links(data, size):
                    if len(name) > _LONGEST:
                        return None
                    if not _NEVER.intersection(name.split(b"/")):
                        found[os.fsdecode(name)] = None
                    if len(found) > MOST_LINKS:
                        return None
    return list(found)


def content_of(file: str, most: int) -> bytes:
    """Return the start of a regular file, or b""."""
    try:
        # Opening a pipe without a writer would wait.
        with open(os.open(file, _FLAGS), "rb") as opened:
            return opened.read(most) if stat.S_ISREG(os.fstat(opened.fileno()).st_mode) else b""
    except (OSError, ValueError):
        return b""


def _links(data: bytes, size: int) -> Iterator[bytes]:
    """The format is ``gitformat-index``.

    Other names can appear if a hash looks like the mode of such an entry.
    """
    (version,) = struct.unpack_from(">I", data, 4)
    if version == _COMPRESSED:
        yield from _compressed_links(data, size)
        return
    place = data.find(_MODE)
    while place >= 0:
        begin = _name_at(data, place - _BEFORE_MODE, size)
        yield data[begin : data.index(b"\0", begin)]
        place = data.find(_MODE, place + 1)


def _compressed_links(data: bytes, size: int) -> Iterator[bytes]:
    (count,) = struct.unpack_from(">I", data, 8)
    place, name = 12, b""
    for _ in range(count):
        removed, begin = _number(data, _name_at(data, place, size))
        end = data.index(b"\0", begin)
        name = name[: len(name) - removed] + data[begin:end]
        if len(name) > _LONGEST or data[place + _BEFORE_MODE : place + _BEFORE_MODE + 4] == _MODE:
            yield name
        place = end + 1


def _name_at(data: bytes, entry: int, size: int) -> int:
    (flags,) = struct.unpack_from(">H", data, entry + 40 + size)
    return entry + 42 + size + (2 if flags & _IS_EXTENDED else 0)


def _number(data: bytes, place: int) -> tuple[int, int]:
    byte = data[place]
    number = byte & 0x7F
    while byte & 0x80:
        place += 1
        byte = data[place]
        number = ((number + 1) << 7) | (byte & 0x7F)
    return number, place + 1
