"""Records the runs of a command: in a trace database that is checked first, and as objects in a list."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kantan_agents.errors import FileArgumentError
from kantan_agents.pipeline import Next, Run, Stage

if TYPE_CHECKING:
    from kantan_agents.tracing.recorder import SQLiteRecorder


def collect_runs(runs: list[Run]) -> Stage:
    """Return a stage that appends each run to ``runs``, for its id, trace and instructions."""

    async def collect_run(run: Run, call_next: Next) -> None:
        runs.append(run)
        await call_next(run)

    return collect_run


def check_database(path: Path | None) -> None:
    """Check that traces can be written to ``path``, if there is one, without changing the file.

    This happens before the run, because the SDK only logs the errors of a trace processor.

    Raises:
        FileArgumentError: E79, with the reason.
    """
    if path is None:
        return
    if path.is_dir():
        raise FileArgumentError(path=str(path), reason="it is a directory")
    if not path.parent.is_dir():
        raise FileArgumentError(path=str(path), reason="its directory does not exist")
    if not path.exists():
        return
    from kantan_agents.tracing.schema import check_owner

    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True)
        try:
            check_owner(connection)
            connection.execute("BEGIN IMMEDIATE")
            connection.rollback()
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise FileArgumentError(path=str(path), reason=str(error)) from error


@contextmanager
def recording(path: Path | None) -> Iterator[SQLiteRecorder | None]:
    """Send all traces to the database at ``path`` only; without a path, discard them.

    In both cases the SDK's own exporter, which sends traces to OpenAI, is removed.

    Yields:
        The recorder, or None.

    Raises:
        FileArgumentError: E79, the database cannot be used.
    """
    from agents import set_trace_processors, set_tracing_disabled

    if path is None:
        set_trace_processors([])
        yield None
        return
    from kantan_agents.tracing.recorder import SQLiteRecorder

    _check_tables(path)
    recorder = SQLiteRecorder(path)
    try:
        set_trace_processors([recorder])
        # An explicit database overrides an environment variable that disables tracing.
        set_tracing_disabled(False)
        yield recorder
    finally:
        set_trace_processors([])
        recorder.shutdown()


def _check_tables(path: Path) -> None:
    """Create the tables if they are missing; refuse tables that are not kantan-llm's."""
    from kantan_agents.tracing.schema import make_tables

    try:
        make_tables(path)
    except (sqlite3.Error, OSError) as error:
        raise FileArgumentError(path=str(path), reason=str(error)) from error


def check_recorded(recorder: SQLiteRecorder) -> None:
    """Check that the whole run is in the database.

    Raises:
        FileArgumentError: E79, it is not, for example because the disk is full or the file is read-only.
    """
    if not recorder.force_flush() or recorder.stats().failed:
        raise FileArgumentError(path=str(recorder.path), reason="the run could not be recorded in it")
