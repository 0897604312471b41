"""The event loops that a sync ``run`` blocks while it waits, as the code that it waits for can see them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import attrs


@attrs.define(eq=False)
class _Block:
    loop: asyncio.AbstractEventLoop
    is_over: bool = False


_blocks: ContextVar[tuple[_Block, ...]] = ContextVar("kantan_agents_blocked_loops", default=())


@contextmanager
def blocking(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Mark ``loop`` as blocked for all code that sees the context variables of this code."""
    block = _Block(loop)
    token = _blocks.set((*_blocks.get(), block))
    try:
        yield
    finally:
        block.is_over = True  # a task that the code has started may continue with a copy of the context
        _blocks.reset(token)


def is_blocked(loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether a sync ``run`` that waits for the calling code blocks this event loop."""
    return any(block.loop is loop and not block.is_over for block in _blocks.get())
