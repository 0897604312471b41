"""All recorders of this process, for readers, forks and the process exit."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakSet, ref

from kantan_agents.traces.database_url import Place


class Recorder(Protocol):
    """The interface of a recorder."""

    @property
    def path(self) -> Path:
        """The database file."""

    @property
    def is_failing(self) -> bool:
        """Whether the last write failed."""

    def force_flush(self, timeout: float = ...) -> bool:
        """Wait until everything is written."""

    def start_flush(self) -> Callable[[float], bool]:
        """Start to write; return a function that waits."""

    def prepare_read(self, timeout: float) -> None:
        """Flush before a read, or if the file was replaced."""

    def log_unwritten(self) -> None:
        """Log the spans that will be lost."""

    def holds_this_thread(self) -> bool:
        """Return whether this thread holds a lock of the recorder."""

    def defer(self, action: Callable[[], None]) -> bool:
        """Call ``action`` when this thread leaves the lock; return False if it holds none."""

    def misses(self, trace_id: str) -> bool:
        """Return whether it missed the start of this open trace; False after a shutdown."""

    def on_run_start(self, span: Any) -> None:
        """Record a run's span without its end, for now."""

    def shutdown(self, timeout: float = ...) -> None:
        """Write everything and close the file."""

    def retire(self) -> None:
        """Shut down soon, without blocking an event loop."""

    def before_fork(self) -> None:
        """Stop the thread and close the file."""

    def after_fork_in_parent(self) -> None:
        """Continue writing."""

    def after_fork_in_child(self) -> None:
        """Start empty; the parent writes the waiting spans."""


class Exporter(Protocol):
    """Sends traces to a service that may be down; only the process exit waits."""

    def start_flush(self) -> Callable[[float], bool]:
        """Start to send; return a function that waits."""

    def log_unwritten(self) -> None:
        """Log the spans that will be lost."""

    def after_fork_in_child(self) -> None:
        """Start empty; the parent sends the waiting spans."""


_recorders: WeakSet[Recorder] = WeakSet()
_exporters: WeakSet[Exporter] = WeakSet()


class Main:
    """The last recorder of ``record_traces``."""

    recorder: ref[Recorder] | None = None
    is_known_lost = False


READ_SECONDS = 2.0


def register(recorder: Recorder) -> None:
    """Add ``recorder`` until it is garbage collected."""
    _recorders.add(recorder)


def register_exporter(exporter: Exporter) -> None:
    """Add ``exporter`` until it is garbage collected."""
    _exporters.add(exporter)


def exporters() -> list[Exporter]:
    """Return the exporters of this process."""
    while True:
        with suppress(RuntimeError):  # as in `recorders`
            return list(_exporters)


def register_main(recorder: Recorder) -> None:
    """Make this the recorder of the process's default database."""
    Main.recorder = ref(recorder)
    Main.is_known_lost = False
    for waiting in _waiting:
        waiting(recorder.path)


_waiting: list[Callable[[Path], None]] = []


def when_recorded(waiting: Callable[[Path], None]) -> None:
    """Call ``waiting`` with each path that ``record_traces`` opens."""
    if waiting not in _waiting:
        _waiting.append(waiting)


def main_recorder() -> Recorder | None:
    """Return the last recorder of ``record_traces``, if it still exists."""
    return Main.recorder() if Main.recorder is not None else None


def main_database() -> Path | None:
    """Return the database of ``main_recorder``, if it still exists."""
    recorder = main_recorder()
    return None if recorder is None else recorder.path


def recorders() -> list[Recorder]:
    """Return the recorders of this process."""
    while True:
        # Another thread may be registering. No lock, because signal handlers call this.
        with suppress(RuntimeError):
            return list(_recorders)


def flush_recorders(path: Place, real_path: Callable[[], Place] | None = None) -> None:
    """Flush the recorders of ``path`` before this process reads it.

    ``real_path`` resolves links faster than ``path.resolve``.
    """
    if not _recorders:
        return
    resolved = path.resolve() if real_path is None else real_path()
    for recorder in recorders():
        if recorder.path == resolved:
            recorder.prepare_read(READ_SECONDS)


def flush_all(seconds: float) -> bool:
    """Flush all recorders in parallel; return whether everything is written."""
    deadline = time.monotonic() + seconds
    # All start before the first wait: one file may be locked, the others not.
    waits = [recorder.start_flush() for recorder in recorders()]
    written = [wait(max(0.0, deadline - time.monotonic())) for wait in waits]
    return all(written)


def flush_at_end(seconds: float) -> bool:
    """Flush recorders and exporters at process exit."""
    deadline = time.monotonic() + seconds
    waits = [exporter.start_flush() for exporter in exporters()]
    are_written = flush_all(seconds)
    for wait in waits:
        wait(max(0.0, deadline - time.monotonic()))
    return are_written


def log_unwritten() -> None:
    """Log the spans that will be lost, if logging still works."""
    for waiting in (*recorders(), *exporters()):
        with suppress(Exception):
            waiting.log_unwritten()
