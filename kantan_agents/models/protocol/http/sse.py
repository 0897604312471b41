"""Parser of server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator


async def events_of(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Yield the data of each event of a stream; an event that is cut off before its empty line is dropped.

    Only a line feed ends a line, because JSON may contain the other line separators of Unicode unescaped.
    """
    data: list[bytes] = []
    async for line in _lines(chunks):
        if not line:
            if data:
                yield b"\n".join(data)
                data = []
        elif line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))


async def _lines(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    partial: list[bytes] = []
    async for chunk in chunks:
        first, *others = chunk.split(b"\n")
        partial.append(first)
        for line in others:
            yield b"".join(partial).removesuffix(b"\r")
            partial = [line]
