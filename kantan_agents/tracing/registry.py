"""The recorders of this process, for code that must reach all of them: readers, forks, the process exit."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Protocol
from weakref import WeakSet, ref


class Recorder(Protocol):
    """The interface of a recorder; the recorder's module imports this one."""

    @property
    def path(self) -> Path:
        """The database file."""

    def force_flush(self, timeout: float = ...) -> bool:
        """Wait until everything is written."""

    def shutdown(self, timeout: float = ...) -> None:
        """Write all waiting spans and close the file."""

    def before_fork(self) -> None:
        """Stop the thread and close the file."""

    def after_fork_in_parent(self) -> None:
        """Continue writing."""

    def after_fork_in_child(self) -> None:
        """Start empty; the parent writes the spans that were waiting."""


_recorders: WeakSet[Recorder] = WeakSet()


class _Main:
    """The recorder that ``record_traces`` created last."""

    recorder: ref[Recorder] | None = None


READ_SECONDS = 2.0


def register(recorder: Recorder) -> None:
    """Add ``recorder`` until it is garbage collected."""
    _recorders.add(recorder)


def register_main(recorder: Recorder) -> None:
    """Make ``recorder`` the one whose database is the process's own."""
    _Main.recorder = ref(recorder)


def main_database() -> Path | None:
    """Return the database that ``record_traces`` has opened; None if its recorder no longer exists."""
    recorder = _Main.recorder() if _Main.recorder is not None else None
    return None if recorder is None else recorder.path


def recorders() -> list[Recorder]:
    """Return the recorders of this process."""
    while True:
        # Another thread may register a recorder right now. No lock, because signal handlers call this.
        with suppress(RuntimeError):
            return list(_recorders)


def flush_recorders(path: Path) -> None:
    """Flush the recorders that write to ``path``, before this process reads the file."""
    resolved = path.resolve()
    for recorder in recorders():
        if recorder.path == resolved:
            recorder.force_flush(READ_SECONDS)


def flush_all(seconds: float) -> None:
    """Flush all recorders of this process within ``seconds``."""
    deadline = time.monotonic() + seconds
    for recorder in recorders():
        recorder.force_flush(max(0.0, deadline - time.monotonic()))
