"""Writes what waits before a SIGTERM ends the process, without blocking an event loop."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable
from functools import partial, wraps
from signal import signal as set_handler
from types import FrameType
from typing import Any

from kantan_agents.tracing import registry
from kantan_agents.tracing.recorder import bound

# If the process still runs this long after a SIGTERM, it is assumed to go on.
SHUTDOWN_SECONDS = 60.0


class _Shutdown:
    until = 0.0
    undo: Callable[[], None] | None = None


def flush_on_sigterm() -> None:
    """Write everything before a SIGTERM ends the process, with or without a handler for it.

    Without a handler, this function installs one that flushes and then ends the process as usual. An existing
    handler is called as before. It may let the process work for a while, so nothing waits on an event loop:
    each trace that ends is written as soon as possible by the recorder's own thread.

    Some servers, such as uvicorn, finish their requests, restore the default action and send themselves the
    signal again. Neither the end of the loop nor the exit functions are reached then, and Python has no hook
    for it. After the first SIGTERM, ``signal.signal`` is therefore replaced by a function that sets the
    handler of this module instead of the default action, which flushes first. The standard function is put
    back as soon as that has happened, when the process is found to go on, and in a forked child.

    Does nothing outside the main thread, or if the signal is ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    present = signal.getsignal(signal.SIGTERM)
    if present is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _flush_and_end)
    elif callable(present) and present is not _flush_and_end and not isinstance(present, _Handler):
        signal.signal(signal.SIGTERM, _Handler(present))


def is_shutting_down() -> bool:
    """Return whether the application has handled a SIGTERM within the last ``SHUTDOWN_SECONDS``."""
    if not _Shutdown.until:
        return False
    if time.monotonic() < _Shutdown.until:
        return True
    forget_sigterm()
    return False


def forget_sigterm() -> None:
    """Treat the process, for example a forked child, as not shutting down."""
    _Shutdown.until = 0.0
    _put_back()


def flush_in_shutdown(recorder: registry.Recorder) -> None:
    """Write what a recorder holds: wait for it if no event loop runs in this thread, else only request it."""
    if may_wait([recorder]):
        bound.flush_within_bound(recorder.force_flush, is_ending=True)
    else:
        recorder.start_flush()


class _Handler:
    """Calls the application's signal handler, then flushes; marks the process as shutting down."""

    def __init__(self, handler: Callable[[int, FrameType | None], Any]) -> None:
        self._handler = handler

    def __call__(self, number: int, frame: FrameType | None) -> Any:
        _Shutdown.until = time.monotonic() + SHUTDOWN_SECONDS
        _replace_default_action()
        try:
            return self._handler(number, frame)
        finally:
            recorders = registry.recorders()
            if may_wait(recorders):
                bound.flush_within_bound(registry.flush_all, is_ending=True)
            else:
                for recorder in recorders:
                    recorder.start_flush()


def may_wait(recorders: list[registry.Recorder]) -> bool:
    """Return whether this thread blocks neither an event loop nor, inside a lock, a recorder's thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return not any(recorder.holds_this_thread() for recorder in recorders)
    return False


def _replace_default_action() -> None:
    if _Shutdown.undo is not None:
        return
    present = signal.signal

    @wraps(present)
    def flushing_first(number: int, handler: Any) -> Any:
        is_default = number == signal.SIGTERM and handler == signal.SIG_DFL
        if not is_default or _Shutdown.undo is not undo or not is_shutting_down():
            return present(number, handler)
        before = present(number, _flush_and_end)
        _put_back()
        return before

    def undo() -> None:
        # Another library may have wrapped this function since; then it only passes its arguments on.
        if signal.signal is flushing_first:
            signal.signal = present

    _Shutdown.undo = undo
    signal.signal = flushing_first  # type: ignore[assignment]


def _put_back() -> None:
    undo, _Shutdown.undo = _Shutdown.undo, None
    if undo is not None:
        undo()


def _flush_and_end(number: int, frame: FrameType | None) -> None:
    # Inside a recorder's lock, the recorder's thread would wait for this one. The section lasts microseconds.
    again = partial(_flush_and_end, number, frame)
    if any(recorder.defer(again) for recorder in registry.recorders()):
        return
    bound.flush_within_bound(registry.flush_all, is_ending=True)
    set_handler(number, signal.SIG_DFL)
    signal.raise_signal(number)
