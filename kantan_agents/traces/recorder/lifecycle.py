"""Flushes recorders when a loop, a worker or the process ends; handles forks."""

from __future__ import annotations

import asyncio
import atexit
import os
import sys
from collections.abc import AsyncGenerator
from typing import Any
from weakref import WeakSet

from kantan_agents.traces import registry
from kantan_agents.traces.recorder import bound, sigterm

FORK_SECONDS = 2.0

# By id, which no other loop can have meanwhile: a started generator keeps its loop alive.
_watched_loops: dict[int, tuple[asyncio.AbstractEventLoop, AsyncGenerator[None, None]]] = {}
_ended_loops: WeakSet[asyncio.AbstractEventLoop] = WeakSet()


class Watched:
    """The loop that called last, almost always the next caller too."""

    latest: asyncio.AbstractEventLoop | None = None


def flush_at_loop_end() -> None:
    """Flush all recorders when the running event loop, if any, ends.

    The only public hook between the last task and the end of the loop: ``asyncio.run`` closes the
    asynchronous generators of its loop.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    if id(loop) in _watched_loops:
        Watched.latest = loop
        return
    if loop in _ended_loops:
        return
    # asyncio has no public one. A generator started now would cause a warning.
    if getattr(loop, "_asyncgens_shutdown_called", False):
        _ended_loops.add(loop)
        return
    for key, (watched, _) in list(_watched_loops.items()):
        if watched.is_closed():  # without shutting down its generators
            _watched_loops.pop(key, None)
            _forget(watched)
    generator = _flush_when_closed(loop)
    _watched_loops[id(loop)] = (loop, generator)
    try:
        generator.asend(None).send(None)
    except StopIteration:
        return  # the generator is suspended at its yield


def _forget(loop: asyncio.AbstractEventLoop) -> None:
    if Watched.latest is loop:
        Watched.latest = None


async def _flush_when_closed(loop: asyncio.AbstractEventLoop) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        # Later traces have no further hook.
        _ended_loops.add(loop)
        _watched_loops.pop(id(loop), None)
        _forget(loop)
        try:
            flushing = loop.run_in_executor(None, _flush_at_loop_end)
        except RuntimeError:  # no more threads
            _flush_at_loop_end()
        else:
            await flushing


def _flush_at_loop_end() -> None:
    bound.flush_within_bound(registry.flush_all, is_ending=sigterm.is_shutting_down())


class _Process:
    has_exit_hook = False
    has_worker_hook = False
    has_exited = False


def watch_process() -> None:
    """Flush at exit, and prepare for forks."""
    if not _Process.has_exit_hook:
        _Process.has_exit_hook = True
        atexit.register(_at_exit)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=_before_fork,
                after_in_parent=_after_fork_in_parent,
                after_in_child=_after_fork_in_child,
            )


def watch_worker() -> None:
    """Flush when a ``multiprocessing`` worker ends, without exit functions."""
    if _Process.has_worker_hook or "multiprocessing.process" not in sys.modules:
        return
    from multiprocessing import parent_process, util

    if parent_process() is not None:
        _Process.has_worker_hook = True
        util.Finalize(None, _at_exit, exitpriority=0)


def has_exited() -> bool:
    """Return whether the exit function has run: new threads are useless then."""
    return _Process.has_exited


def _at_exit() -> None:
    bound.flush_within_bound(registry.flush_at_end, is_ending=True)
    for recorder in registry.recorders():
        recorder.shutdown(bound.remaining(is_ending=True))
    _Process.has_exited = True
    registry.log_unwritten()


def _before_fork() -> None:
    for recorder in registry.recorders():
        recorder.before_fork()


def _after_fork_in_parent() -> None:
    for recorder in registry.recorders():
        recorder.after_fork_in_parent()


def _after_fork_in_child() -> None:
    _Process.has_worker_hook = False
    _Process.has_exited = False
    sigterm.flush_in_child()
    bound.renew()
    for waiting in (*registry.recorders(), *registry.exporters()):
        waiting.after_fork_in_child()


# Connections of the parent, which SQLite forbids closing in the child.
abandoned_connections: list[Any] = []
