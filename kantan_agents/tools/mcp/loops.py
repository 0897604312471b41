"""Work on the event loop that owns an MCP server's connection.

A waiting sync ``run`` blocks its event loop: no work can be sent there.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import attrs

from kantan_agents.errors import MCPServerLoopError

T = TypeVar("T")

_BEGIN_SECONDS = 5.0
_LOOK_SECONDS = 1.0
_PAUSE_SECONDS = 0.5
_STEP_SECONDS = 0.02
_CLOSING_SECONDS = 15.0


class LoopEndedError(Exception):
    """The event loop for the work has ended; ``has_begun`` is whether the work had started."""

    def __init__(self, *, has_begun: bool) -> None:
        super().__init__("the event loop of its connection has ended")
        self.has_begun = has_begun


def is_gone(loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether an event loop never runs again: closed, or without its thread after a fork."""
    if loop.is_closed():
        return True
    thread = getattr(loop, "_thread_id", None)  # set while it runs, by asyncio's own loops
    return thread is not None and all(one.ident != thread for one in threading.enumerate())


async def run_on(
    home: asyncio.AbstractEventLoop, work: Callable[[], Awaitable[T]], server: str, agent: str
) -> T:
    """Await ``work()`` on ``home``, another event loop than the running one.

    The work sees the caller's context variables, and is canceled with the caller.

    Raises:
        MCPServerLoopError: E37, that event loop does not run, or does not start the work within some seconds.
        LoopEndedError: It ended before the work did, as ``asyncio.run`` in another thread may.
    """
    if is_blocked(home):
        raise MCPServerLoopError(server=server, agent=agent, reason="agent.run blocks until it returns")
    if not await _is_moving(home):
        raise MCPServerLoopError(server=server, agent=agent, reason="is not running")
    has_begun = False

    async def begin() -> T:
        nonlocal has_begun
        has_begun = True
        return await work()

    waiting = _submitted(begin(), home)
    waited = 0.0
    try:
        while True:
            await asyncio.wait({waiting}, timeout=_LOOK_SECONDS)
            if waiting.cancelled() or (is_gone(home) and not waiting.done()):
                # Not canceled by the caller: the wait would raise that.
                await _ended(home, _CLOSING_SECONDS)
                raise LoopEndedError(has_begun=has_begun)
            if waiting.done():
                return waiting.result()
            waited += _LOOK_SECONDS
            if not has_begun and waited >= _BEGIN_SECONDS:
                reason = f"has not begun the work within {_BEGIN_SECONDS:g} seconds: something blocks it"
                raise MCPServerLoopError(server=server, agent=agent, reason=reason)
            if not await _is_moving(home):
                raise MCPServerLoopError(server=server, agent=agent, reason="has stopped during the work")
    finally:
        if not is_gone(home):
            waiting.cancel()


def _submitted(work: Coroutine[Any, Any, T], home: asyncio.AbstractEventLoop) -> asyncio.Future[T]:
    try:
        return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, home))
    except RuntimeError:  # it has just been closed
        work.close()
        raise LoopEndedError(has_begun=False) from None


async def _is_moving(loop: asyncio.AbstractEventLoop) -> bool:
    # Between two steps of its end, an event loop neither runs nor is closed.
    return loop.is_running() or await _ended(loop, _PAUSE_SECONDS)


async def _ended(loop: asyncio.AbstractEventLoop, seconds: float) -> bool:
    for _ in range(int(seconds / _STEP_SECONDS)):
        if is_gone(loop):
            return True
        await asyncio.sleep(_STEP_SECONDS)
    return False


@attrs.define(eq=False)
class _Block:
    loop: asyncio.AbstractEventLoop
    is_over: bool = False


_blocks: ContextVar[tuple[_Block, ...]] = ContextVar("kantan_agents_blocked_loops", default=())


@contextmanager
def blocking(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Flag ``loop`` as blocked for all code that sees this code's context variables."""
    block = _Block(loop)
    token = _blocks.set((*_blocks.get(), block))
    try:
        yield
    finally:
        block.is_over = True  # a task that the code has started may continue with a copy of the context
        _blocks.reset(token)


def is_blocked(loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether a sync ``run`` that waits for the caller blocks this event loop."""
    return any(block.loop is loop and not block.is_over for block in _blocks.get())
