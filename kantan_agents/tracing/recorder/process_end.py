"""The ends of a process, and the beginnings: normal exit, SIGTERM, the end of a worker, a fork."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from kantan_agents.tracing import registry

EXIT_SECONDS = 5.0
SIGTERM_SECONDS = 5.0
FORK_SECONDS = 2.0
# A service that does not end on SIGTERM goes on as before after that.
NEAR_SECONDS = 60.0


class _Watch:
    """What has been set up in this process."""

    exits = False
    workers = False
    has_ended = False
    near_until = 0.0


def watch_process() -> None:
    """Have the recorders written at every end of this process that it is told of."""
    if not _Watch.exits:
        _Watch.exits = True
        atexit.register(_at_exit)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=_before_fork,
                after_in_parent=_after_fork_in_parent,
                after_in_child=_after_fork_in_child,
            )


def watch_worker() -> None:
    """Have the recorders written when a ``multiprocessing`` worker ends: it calls no exit functions."""
    if _Watch.workers or "multiprocessing.process" not in sys.modules:
        return
    from multiprocessing import parent_process, util

    if parent_process() is not None:
        _Watch.workers = True
        util.Finalize(None, _at_exit, exitpriority=0)


def flush_on_sigterm() -> None:
    """Write before a SIGTERM ends the process, whoever handles it.

    Some servers, uvicorn among them, handle SIGTERM, finish their requests, and then send it to themselves
    once more with the default action: exit functions are never called. So where nobody handles it, we do:
    write, and end as it would have ended. Where there is a handler it is called as before, then we write, and
    from then on each trace is written before whoever ends it goes on. Not in another thread than the main
    one, nor where the signal is ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    present = signal.getsignal(signal.SIGTERM)
    if present is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _on_sigterm)
    elif callable(present) and present is not _on_sigterm and not isinstance(present, _Announced):
        signal.signal(signal.SIGTERM, _Announced(present))


class _Announced:
    """A handler of somebody else's, after which everything is written; it is noted that the end is near."""

    def __init__(self, handler: Callable[[int, FrameType | None], Any]) -> None:
        self._handler = handler

    def __call__(self, number: int, frame: FrameType | None) -> Any:
        _Watch.near_until = time.monotonic() + NEAR_SECONDS
        try:
            return self._handler(number, frame)
        finally:
            registry.flush_all(SIGTERM_SECONDS)


def is_near() -> bool:
    """Whether a SIGTERM came a short while ago."""
    return _Watch.near_until > 0 and time.monotonic() < _Watch.near_until


def _on_sigterm(number: int, frame: FrameType | None) -> None:
    del frame
    registry.flush_all(SIGTERM_SECONDS)
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)


def has_come() -> bool:
    """Whether the exit functions of this process are being called, so that a thread would not get far."""
    return _Watch.has_ended


def _at_exit() -> None:
    for recorder in registry.recorders():
        recorder.shutdown(EXIT_SECONDS)
    _Watch.has_ended = True


def _before_fork() -> None:
    for recorder in registry.recorders():
        recorder.before_fork()


def _after_fork_in_parent() -> None:
    for recorder in registry.recorders():
        recorder.after_fork_in_parent()


def _after_fork_in_child() -> None:
    _Watch.workers = False
    _Watch.has_ended = False
    _Watch.near_until = 0.0
    for recorder in registry.recorders():
        recorder.after_fork_in_child()


# Connections of the parent that could not be closed before a fork. SQLite forbids even closing them.
abandoned: list[Any] = []
