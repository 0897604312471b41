"""Reads a file in blocks, within bounded memory."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator

from kantan_agents.toolkit.files.text import BinaryFileError, marked_encoding
from kantan_agents.toolkit.files.threads import SearchStop

BLOCK = 1 << 20
_FIRST = 1 << 16


def text_blocks(file: int, size: int, stop: SearchStop, block: int = BLOCK) -> Iterator[bytes]:
    """Yield a file as UTF-8 in whole lines, or parts of a line longer than a block.

    A growing file ends after ``size`` bytes.
    """
    data = _read(file, min(size, _FIRST, block))
    mark, encoding = marked_encoding(data)
    left = size - len(data)
    data = data[len(mark) :]
    decoder = None
    if encoding not in (None, "utf-8"):
        decoder = codecs.getincrementaldecoder(encoding)("replace")
    rest = b""
    while data:
        stop.check()
        if decoder is not None:
            data = decoder.decode(data, final=not left).encode()
        elif b"\0" in data:
            raise BinaryFileError
        if not left:
            yield from _pieces(rest + data, block)
            return
        end = data.rfind(b"\n") + 1
        if end:
            yield from _pieces(rest + data[:end], block)
            rest = data[end:]
        else:
            rest += data
        if len(rest) >= block:
            yield rest
            rest = b""
        data = _read(file, min(left, block))
        left = left - len(data) if data else 0
    if rest:
        yield rest


def _pieces(data: bytes, block: int) -> Iterator[bytes]:
    start = 0
    while len(data) - start > block:
        end = data.rfind(b"\n", start, start + block) + 1 or start + block
        yield data[start:end]
        start = end
    if start < len(data):
        yield data[start:] if start else data


def _read(file: int, size: int) -> bytes:
    data = os.read(file, size) if size else b""
    while data and len(data) < size:
        more = os.read(file, size - len(data))
        if not more:
            break
        data += more
    return data
