"""Writes waiting spans before a SIGTERM ends the process, without blocking a loop."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial, wraps
from signal import signal as set_handler
from types import FrameType
from typing import Any

from kantan_agents.traces import registry
from kantan_agents.traces.recorder import bound

# A process that still runs after this is assumed to continue.
SHUTDOWN_SECONDS = 60.0
_LOG_SECONDS = 1.0


# Ctrl-C usually raises KeyboardInterrupt, before the exit functions. Pre-fork servers set its default action
# in their workers, which ends them like a SIGTERM.
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class _Process:
    is_flushed = False
    shuts_down_until = 0.0
    undo: Callable[[], None] | None = None


def flush_on_sigterm() -> None:
    """Write everything before a SIGTERM ends the process.

    So does a SIGINT with the default action, or with the handler of SIGTERM. Does nothing outside the main
    thread, or if the signal is ignored.

    An existing handler is called as before. It may let the process work for a while, so nothing waits on an
    event loop: the recorder's thread writes each ending trace as soon as possible.

    Some servers, such as uvicorn, restore the default action at the end and send themselves the signal again.
    That skips the exit functions, and Python has no hook for it. Therefore, after the first SIGTERM,
    ``signal.signal`` installs this module's handler, which flushes first, instead of the default action.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    _Process.is_flushed = True
    of_sigterm = signal.getsignal(signal.SIGTERM)
    for number in _SIGNALS:
        present = signal.getsignal(number)
        if present is signal.SIG_DFL:
            signal.signal(number, _flush_and_end)
        elif callable(present) and present == of_sigterm and not _is_own(present):
            signal.signal(number, _Handler(present))


def flush_in_child() -> None:
    """Make a forked child flush as its parent would; call it in the child.

    A worker of a pre-fork server resets the inherited handlers. So until the child sets an action for
    SIGTERM, this module's handler replaces the default one.
    """
    was_shutting_down = is_shutting_down()
    _Process.shuts_down_until = 0.0
    _put_back()
    if _Process.is_flushed and not was_shutting_down:
        _replace_default_action(only_once=True)


def is_shutting_down() -> bool:
    """Return whether a SIGTERM arrived within the last ``SHUTDOWN_SECONDS``."""
    if not _Process.shuts_down_until:
        return False
    if time.monotonic() < _Process.shuts_down_until:
        return True
    _Process.shuts_down_until = 0.0
    _put_back()
    return False


def flush_in_shutdown(recorder: registry.Recorder) -> None:
    """Flush a recorder; on an event loop, do not wait."""
    if may_wait([recorder]):
        bound.flush_within_bound(recorder.force_flush, is_ending=True)
    else:
        recorder.start_flush()


class _Handler:
    def __init__(self, handler: Callable[[int, FrameType | None], Any]) -> None:
        self._handler = handler

    def __call__(self, number: int, frame: FrameType | None) -> Any:
        _Process.shuts_down_until = time.monotonic() + SHUTDOWN_SECONDS
        _replace_default_action()
        try:
            return self._handler(number, frame)
        finally:
            recorders = registry.recorders()
            if may_wait(recorders):
                bound.flush_within_bound(registry.flush_at_end, is_ending=True)
            else:
                for waiting in (*recorders, *registry.exporters()):
                    waiting.start_flush()


def may_wait(recorders: list[registry.Recorder]) -> bool:
    """Return whether waiting blocks neither an event loop nor a recorder's thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return not any(recorder.holds_this_thread() for recorder in recorders)
    return False


def _is_own(handler: Any) -> bool:
    return handler is _flush_and_end or isinstance(handler, _Handler)


def _replace_default_action(*, only_once: bool = False) -> None:
    """Replace ``signal.signal`` until SIGTERM gets an action: the default one flushes first.

    With ``only_once``, any action restores it.
    """
    if _Process.undo is not None:
        return
    present = signal.signal

    @wraps(present)
    def flushing_first(number: int, handler: Any) -> Any:
        if _Process.undo is not undo or not (only_once or is_shutting_down()):
            return present(number, handler)
        is_default = handler == signal.SIG_DFL and number in _SIGNALS
        before = present(number, _flush_and_end if is_default else handler)
        if number == signal.SIGTERM and (is_default or only_once):
            _put_back()
        return before

    def undo() -> None:
        # If another library wrapped this function since, it now only passes its arguments on.
        if signal.signal is flushing_first:
            signal.signal = present

    _Process.undo = undo
    signal.signal = flushing_first  # type: ignore[assignment]


def _put_back() -> None:
    undo, _Process.undo = _Process.undo, None
    if undo is not None:
        undo()


def _flush_and_end(number: int, frame: FrameType | None) -> None:
    # Inside its lock, the recorder's thread would wait for this one, but only for microseconds.
    again = partial(_flush_and_end, number, frame)
    if any(recorder.defer(again) for recorder in registry.recorders()):
        return
    try:
        bound.flush_within_bound(registry.flush_at_end, is_ending=True)
    finally:
        set_handler(number, signal.SIG_DFL)  # another signal now ends the process immediately
        _log_unwritten()
        signal.raise_signal(number)


def _log_unwritten() -> None:
    # In a thread, briefly: this one may hold a lock of the logging handler.
    logging = threading.Thread(target=registry.log_unwritten, name="kantan-agents-log", daemon=True)
    with suppress(RuntimeError):  # no more threads
        logging.start()
        logging.join(_LOG_SECONDS)
