"""The recorders of this process, for whoever has to reach all of them: readers, forks, the end."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Protocol
from weakref import WeakSet


class Recorder(Protocol):
    """What a recorder is to this module, which it imports."""

    @property
    def path(self) -> Path:
        """The database file."""

    def force_flush(self, timeout: float = ...) -> bool:
        """Wait until everything is written."""

    def shutdown(self, timeout: float = ...) -> None:
        """Write what waits and close the file."""

    def before_fork(self) -> None:
        """Let go of thread and file."""

    def after_fork_in_parent(self) -> None:
        """Go on."""

    def after_fork_in_child(self) -> None:
        """Begin anew, without what the parent will write."""


_recorders: WeakSet[Recorder] = WeakSet()

READ_SECONDS = 2.0


def register(recorder: Recorder) -> None:
    """Remember ``recorder`` for as long as it lives."""
    _recorders.add(recorder)


def recorders() -> list[Recorder]:
    """Return the recorders of this process."""
    while True:
        # Another thread may make one just now. A lock could be held where a signal handler asks.
        with suppress(RuntimeError):
            return list(_recorders)


def flush_recorders(path: Path) -> None:
    """Have what this process recorded written, before it reads the file at ``path``."""
    resolved = path.resolve()
    for recorder in recorders():
        if recorder.path == resolved:
            recorder.force_flush(READ_SECONDS)


def flush_all(seconds: float) -> None:
    """Have everything written that this process recorded, within ``seconds``."""
    deadline = time.monotonic() + seconds
    for recorder in recorders():
        recorder.force_flush(max(0.0, deadline - time.monotonic()))
