"""Flushes the recorders when an event loop, a worker or the process ends, and handles forks."""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable
from types import FrameType
from typing import Any
from weakref import WeakSet

from kantan_agents.tracing import registry

LOOP_SECONDS = 5.0
EXIT_SECONDS = 5.0
SIGTERM_SECONDS = 5.0
FORK_SECONDS = 2.0
# If the process still runs this long after a SIGTERM, it is assumed to go on.
SHUTDOWN_SECONDS = 60.0

# By id: a generator that has started keeps its loop alive, so that no other loop can have this id meanwhile.
_watched_loops: dict[int, tuple[asyncio.AbstractEventLoop, AsyncGenerator[None, None]]] = {}
_ended_loops: WeakSet[asyncio.AbstractEventLoop] = WeakSet()


def flush_at_loop_end() -> None:
    """Flush all recorders when the running event loop, if any, shuts down its asynchronous generators.

    When the main task is over, ``asyncio.run`` closes the asynchronous generators that were started on its
    loop, and awaits them. This is the only public hook between the last task and the end of the loop.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    if id(loop) in _watched_loops or loop in _ended_loops:
        return
    # A private attribute, as asyncio has no public one. A generator started now would cause a warning.
    if getattr(loop, "_asyncgens_shutdown_called", False):
        _ended_loops.add(loop)
        return
    for key, (watched, _) in list(_watched_loops.items()):
        if watched.is_closed():  # without shutting down its generators
            _watched_loops.pop(key, None)
    generator = _flush_when_closed(loop)
    _watched_loops[id(loop)] = (loop, generator)
    try:
        generator.asend(None).send(None)
    except StopIteration:
        return  # the generator is suspended at its yield


async def _flush_when_closed(loop: asyncio.AbstractEventLoop) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        # A trace that starts after this has no further hook.
        _ended_loops.add(loop)
        _watched_loops.pop(id(loop), None)
        try:
            flushing = loop.run_in_executor(None, registry.flush_all, LOOP_SECONDS)
        except RuntimeError:  # no more threads
            registry.flush_all(LOOP_SECONDS)
        else:
            await flushing


class _Process:
    """The hooks installed in this process, and the progress of its shutdown."""

    has_exit_hook = False
    has_worker_hook = False
    has_exited = False
    shutdown_until = 0.0


def watch_process() -> None:
    """Flush the recorders at exit, and let them prepare for forks."""
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
    """Flush the recorders when a ``multiprocessing`` worker ends; workers do not call exit functions."""
    if _Process.has_worker_hook or "multiprocessing.process" not in sys.modules:
        return
    from multiprocessing import parent_process, util

    if parent_process() is not None:
        _Process.has_worker_hook = True
        util.Finalize(None, _at_exit, exitpriority=0)


def flush_on_sigterm() -> None:
    """Flush the recorders before a SIGTERM ends the process, with or without a handler for it.

    Some servers, such as uvicorn, handle SIGTERM, finish their requests, and then send the signal to
    themselves again with the default action, so that exit functions are never called. Without a handler, this
    function installs one that flushes and then ends the process as usual. An existing handler is called as
    before, then everything is flushed. From then on, each trace is flushed before the thread that ends it
    continues.

    Does nothing outside the main thread, or if the signal is ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    present = signal.getsignal(signal.SIGTERM)
    if present is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _on_sigterm)
    elif callable(present) and present is not _on_sigterm and not isinstance(present, _FlushingHandler):
        signal.signal(signal.SIGTERM, _FlushingHandler(present))


class _FlushingHandler:
    """Calls the application's signal handler, then flushes; marks the process as shutting down."""

    def __init__(self, handler: Callable[[int, FrameType | None], Any]) -> None:
        self._handler = handler

    def __call__(self, number: int, frame: FrameType | None) -> Any:
        _Process.shutdown_until = time.monotonic() + SHUTDOWN_SECONDS
        try:
            return self._handler(number, frame)
        finally:
            registry.flush_all(SIGTERM_SECONDS)


def is_shutting_down() -> bool:
    """Return whether the application has handled a SIGTERM within the last ``SHUTDOWN_SECONDS``."""
    return _Process.shutdown_until > 0 and time.monotonic() < _Process.shutdown_until


def _on_sigterm(number: int, frame: FrameType | None) -> None:
    del frame
    registry.flush_all(SIGTERM_SECONDS)
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)


def has_exited() -> bool:
    """Return whether the exit function of this module has run; a new thread would not get far."""
    return _Process.has_exited


def _at_exit() -> None:
    for recorder in registry.recorders():
        recorder.shutdown(EXIT_SECONDS)
    _Process.has_exited = True


def _before_fork() -> None:
    for recorder in registry.recorders():
        recorder.before_fork()


def _after_fork_in_parent() -> None:
    for recorder in registry.recorders():
        recorder.after_fork_in_parent()


def _after_fork_in_child() -> None:
    _Process.has_worker_hook = False
    _Process.has_exited = False
    _Process.shutdown_until = 0.0
    for recorder in registry.recorders():
        recorder.after_fork_in_child()


# Connections of the parent that could not be closed before a fork. In the child, SQLite forbids closing them.
abandoned_connections: list[Any] = []
