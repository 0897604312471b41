"""pytest plugin: a test fails if it leaves something behind that runs, waits or watches.

Such a thing costs later tests time, and disturbs those that count threads, spans or processes. The check of a
test that leaves nothing takes some 20 microseconds.
"""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast
from weakref import WeakKeyDictionary

import attrs
import pytest

from kantan_agents.agent.running.portal import background_loop
from kantan_agents.core.events.observers import everywhere
from kantan_agents.traces import registry

PATIENCE = 10.0
"""Seconds that a thread or process which was asked to end has until it is seen as left behind."""

FAR = 1.0
"""A timer of the background loop may be left behind if it fires within this many seconds."""

_PAUSE = 0.005
_TASKS = "/proc/self/task"  # Linux only; elsewhere processes are not checked
_loops: WeakKeyDictionary[asyncio.BaseEventLoop, threading.Thread] = WeakKeyDictionary()


def _notice_loops() -> None:
    make = asyncio.BaseEventLoop.__init__

    def noticed(self: asyncio.BaseEventLoop) -> None:
        make(self)
        _loops[self] = threading.current_thread()

    asyncio.BaseEventLoop.__init__ = noticed  # type: ignore[assignment, method-assign]


_notice_loops()


def _children() -> set[int]:
    """Return the ids of this process's children."""
    children: set[int] = set()
    # Without pathlib, which would take longer than all other checks together.
    with suppress(OSError):
        for task in os.listdir(_TASKS):  # noqa: PTH208
            with suppress(OSError), open(f"{_TASKS}/{task}/children", "rb") as file:  # noqa: PTH123
                children.update(map(int, file.read().split()))
    return children


def _background_loop() -> asyncio.AbstractEventLoop | None:
    """Return the loop of the sync ``run``, which stays until the process ends."""
    served = background_loop._current
    return None if served is None else served._loop


def _open_loops() -> set[Any]:
    """Return the loops that are open, except those of other threads: the thread is what runs on."""
    here = threading.current_thread()
    open_loops = {
        loop
        for loop, thread in list(_loops.items())
        if (thread is here or not thread.is_alive()) and not loop.is_closed()
    }
    return open_loops - {_background_loop()}


def _threads() -> set[threading.Thread]:
    return set(threading.enumerate())


def _recorders() -> set[Any]:
    """Return the recorders whose file is open."""
    return {
        recorder for recorder in cast(list[Any], registry.recorders()) if recorder._writer.thread is not None
    }


@attrs.frozen
class Kind:
    """A kind of things that a test may leave behind.

    Attributes:
        name: What one is called in the message.
        present: Returns those that exist now.
        describe: Returns the text for one of them.
        may_stay: Whether one of them is meant to outlive the test.
    """

    name: str
    present: Callable[[], Any]
    describe: Callable[[Any], str] = repr
    may_stay: Callable[[Any], bool] = lambda _: False


def _thread_may_stay(thread: threading.Thread) -> bool:
    """Return whether it serves a loop that goes on, or is tqdm's, which bm25s starts and nobody can end."""
    served = background_loop._current
    if thread.name == "tqdm_monitor" or (served is not None and thread is served.thread):
        return True
    # A loop that stays although it may not is named itself.
    loops = [loop for loop in list(_loops) if not loop.is_closed()]
    executors = [getattr(loop, "_default_executor", None) for loop in loops]
    return getattr(thread, "loop", None) in loops or any(
        thread in getattr(executor, "_threads", ()) for executor in executors
    )


def _far_timers() -> set[Any]:
    """Return the timers of the background loop that do not fire soon."""
    loop = _background_loop()
    if loop is None or loop.is_closed():
        return set()
    limit = loop.time() + FAR
    timers = list(getattr(loop, "_scheduled", ()))
    return {timer for timer in timers if not timer.cancelled() and timer.when() > limit}


def _tasks() -> set[Any]:
    """Return the tasks of the background loop, without the one that keeps it running."""
    loop = _background_loop()
    if loop is None or loop.is_closed():
        return set()
    return {task for task in asyncio.all_tasks(loop) if "Event.wait" not in repr(task.get_coro())}


def _command_line(process: int) -> str:
    try:
        command = Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        state = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return str(process)
    return f"{process}, state {state}: {command[:300]}"


def _process_may_stay(process: int) -> bool:
    """Return whether it serves all tests of the session from its first use."""
    serving = ("tests.postgres_server", "tests/preloaded.py", "temporal-test-server")
    return any(name in _command_line(process) for name in serving)


KINDS = (
    Kind("thread", _threads, may_stay=_thread_may_stay),
    Kind("event loop", _open_loops),
    Kind("task of the background loop", _tasks),
    Kind("timer of the background loop", _far_timers),
    Kind("recorder", _recorders),
    Kind("observer of all runs", lambda: set(everywhere.handlers)),
    Kind("child process", _children, _command_line, _process_may_stay),
)


class Before:
    """What exists when a test starts."""

    def __init__(self) -> None:
        self._present = [kind.present() for kind in KINDS]

    def left(self) -> list[str]:
        """Return a line for each thing that exists now and did not then, and is not meant to stay."""
        return [
            f"{kind.name}: {kind.describe(one)}"
            for kind, before in zip(KINDS, self._present, strict=True)
            for one in kind.present() - before
            if not kind.may_stay(one)
        ]

    def left_for_good(self) -> list[str]:
        """Return the same, for what does not end by itself within ``PATIENCE``."""
        left = self.left()
        if left:
            gc.collect()  # what a reference cycle holds
        deadline = time.monotonic() + PATIENCE
        while (left := self.left()) and time.monotonic() < deadline:
            time.sleep(_PAUSE)
        return left


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    """Fail after a test that leaves a recorder, a thread, a loop, a timer, an observer or a process behind.

    A plugin's fixture, so that it starts before those of conftest.py and ends after them. What fixtures of a
    module or of the session start is there before.
    """
    before = Before()
    yield
    if left := before.left_for_good():
        lines = "".join(f"\n- {line}" for line in left)
        pytest.fail(f"the test leaves behind, {PATIENCE:g} s after its end:{lines}", pytrace=False)
