"""The recorders of this process, for code that must reach all of them: readers, forks, the process exit."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakSet, ref

from kantan_agents.traces.database_url import Place


class Recorder(Protocol):
    """The interface of a recorder; the recorder's module imports this one."""

    @property
    def path(self) -> Path:
        """The database file."""

    @property
    def is_failing(self) -> bool:
        """Whether the last attempt to write failed."""

    def force_flush(self, timeout: float = ...) -> bool:
        """Wait until everything is written."""

    def start_flush(self) -> Callable[[float], bool]:
        """Start to write everything; return a function that waits for it, at most the given seconds."""

    def prepare_read(self, timeout: float) -> None:
        """Flush before this process reads the file, or if the file was replaced."""

    def log_unwritten(self) -> None:
        """Log the spans that will be lost when the process exits."""

    def holds_this_thread(self) -> bool:
        """Return whether the calling thread holds a lock of the recorder."""

    def defer(self, action: Callable[[], None]) -> bool:
        """Call ``action`` when this thread leaves the recorder's lock; return False if it holds none."""

    def misses(self, trace_id: str) -> bool:
        """Return whether a recorder that is not shut down missed the start of this open trace."""

    def on_run_start(self, span: Any) -> None:
        """Record the span of a run without its end, until the end is recorded."""

    def shutdown(self, timeout: float = ...) -> None:
        """Write all waiting spans and close the file."""

    def retire(self) -> None:
        """Write all waiting spans and close the file soon; never block an event loop."""

    def before_fork(self) -> None:
        """Stop the thread and close the file."""

    def after_fork_in_parent(self) -> None:
        """Continue writing."""

    def after_fork_in_child(self) -> None:
        """Start empty; the parent writes the waiting spans."""


class Exporter(Protocol):
    """Sends traces to a service that may be down; only the process exit waits for it."""

    def start_flush(self) -> Callable[[float], bool]:
        """Start to send everything; return a function that waits for it, at most the given seconds."""

    def log_unwritten(self) -> None:
        """Log the spans that will be lost when the process exits."""

    def after_fork_in_child(self) -> None:
        """Start empty; the parent sends the waiting spans."""


_recorders: WeakSet[Recorder] = WeakSet()
_exporters: WeakSet[Exporter] = WeakSet()


class Main:
    """The recorder that ``record_traces`` created last, and whether its loss was logged."""

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
    """Call ``waiting`` with the path whenever ``record_traces`` opens a database; register it only once."""
    if waiting not in _waiting:
        _waiting.append(waiting)


def main_recorder() -> Recorder | None:
    """Return the recorder that ``record_traces`` created last; None if it no longer exists."""
    return Main.recorder() if Main.recorder is not None else None


def main_database() -> Path | None:
    """Return the database that ``record_traces`` opened; None if its recorder no longer exists."""
    recorder = main_recorder()
    return None if recorder is None else recorder.path


def recorders() -> list[Recorder]:
    """Return the recorders of this process."""
    while True:
        # Another thread may be registering a recorder. No lock, because signal handlers call this.
        with suppress(RuntimeError):
            return list(_recorders)


def flush_recorders(path: Place, real_path: Callable[[], Place] | None = None) -> None:
    """Flush the recorders that write to ``path``, before this process reads the file.

    ``real_path`` returns the path without links, faster than resolving it.
    """
    if not _recorders:
        return
    resolved = path.resolve() if real_path is None else real_path()
    for recorder in recorders():
        if recorder.path == resolved:
            recorder.prepare_read(READ_SECONDS)


def flush_all(seconds: float) -> bool:
    """Flush all recorders in parallel, within ``seconds``; return whether everything is written."""
    deadline = time.monotonic() + seconds
    # Start all before waiting for the first: one file may be locked, the others not.
    waits = [recorder.start_flush() for recorder in recorders()]
    written = [wait(max(0.0, deadline - time.monotonic())) for wait in waits]
    return all(written)


def flush_at_end(seconds: float) -> bool:
    """At process exit, flush recorders and exporters within ``seconds``."""
    deadline = time.monotonic() + seconds
    waits = [exporter.start_flush() for exporter in exporters()]
    are_written = flush_all(seconds)
    for wait in waits:
        wait(max(0.0, deadline - time.monotonic()))
    return are_written


def log_unwritten() -> None:
    """Log the spans that will be lost; logging itself may fail at process exit."""
    for waiting in (*recorders(), *exporters()):
        with suppress(Exception):
            waiting.log_unwritten()
