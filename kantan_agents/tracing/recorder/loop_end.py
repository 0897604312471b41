"""At the end of ``asyncio.run``, what was recorded in it is in the database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from weakref import WeakSet

from kantan_agents.tracing import registry

FLUSH_SECONDS = 5.0

# By id: a generator that was begun keeps its loop alive, so no other loop can have that id meanwhile.
_watched: dict[int, tuple[asyncio.AbstractEventLoop, AsyncGenerator[None, None]]] = {}
_ended: WeakSet[asyncio.AbstractEventLoop] = WeakSet()


def flush_at_loop_end() -> None:
    """Have all recorders flushed when the running loop, if there is one, shuts its generators down.

    ``asyncio.run`` closes the asynchronous generators that were begun on its loop when the main task is
    over, and awaits them. It is the one public moment between the last task and the end of the loop.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    if id(loop) in _watched or loop in _ended:
        return
    # A private name of asyncio, as there is no public one: a generator begun now would only cause a warning.
    if getattr(loop, "_asyncgens_shutdown_called", False):
        _ended.add(loop)
        return
    for key, (watched, _) in list(_watched.items()):
        if watched.is_closed():  # without shutting its generators down
            _watched.pop(key, None)
    generator = _flush_when_closed(loop)
    _watched[id(loop)] = (loop, generator)
    try:
        generator.asend(None).send(None)
    except StopIteration:
        return  # it stands at its yield


async def _flush_when_closed(loop: asyncio.AbstractEventLoop) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        # A trace that is begun still later has no such moment any more.
        _ended.add(loop)
        _watched.pop(id(loop), None)
        try:
            flushing = loop.run_in_executor(None, registry.flush_all, FLUSH_SECONDS)
        except RuntimeError:  # no more threads
            registry.flush_all(FLUSH_SECONDS)
        else:
            await flushing
