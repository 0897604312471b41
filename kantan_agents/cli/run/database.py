"""The trace database of a command: checked before anything is run, and the only place traces go."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kantan_agents.errors import FileArgumentError

if TYPE_CHECKING:
    from kantan_agents.tracing.recorder import SQLiteRecorder


def check_database(path: Path | None) -> None:
    """Make sure that traces can be written to ``path``, if there is one, leaving it as it is.

    Before the run, because the SDK only logs what a trace processor cannot write.

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
    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True)
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.rollback()
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise FileArgumentError(path=str(path), reason=str(error)) from error


@contextmanager
def recording(path: Path | None) -> Iterator[SQLiteRecorder | None]:
    """Send all traces to the database at ``path`` and nowhere else; without a path, nowhere at all.

    The SDK's own exporter, which sends traces to OpenAI, is taken out in both cases.

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
        # Who names a database wants the traces, whatever the environment says in general.
        set_tracing_disabled(False)
        yield recorder
    finally:
        set_trace_processors([])
        recorder.shutdown()


def _check_tables(path: Path) -> None:
    """Make the tables, if they are not there, and make sure they are kantan-llm's."""
    from kantan_agents.tracing.schema import make_tables

    try:
        make_tables(path)
    except sqlite3.Error as error:
        raise FileArgumentError(path=str(path), reason=str(error)) from error


def check_recorded(recorder: SQLiteRecorder) -> None:
    """Make sure that everything has arrived in the database.

    Raises:
        FileArgumentError: E79, it has not: a full disk, a file that may no longer be written.
    """
    if not recorder.force_flush() or recorder.stats().failed:
        raise FileArgumentError(path=str(recorder.path), reason="the run could not be recorded in it")
