"""The trace database of a command: checked before anything is run, and the only place traces go."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kantan_agents.errors import FileArgumentError

if TYPE_CHECKING:
    from kantan_llm.tracing import SQLiteTracer


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
def recording(path: Path | None) -> Iterator[SQLiteTracer | None]:
    """Send all traces to the database at ``path`` and nowhere else; without a path, nowhere at all.

    The SDK's own exporter, which sends traces to OpenAI, is taken out in both cases.

    Yields:
        kantan-llm's tracer, which is also its search service, or None.

    Raises:
        FileArgumentError: E79, the database cannot be used.
    """
    from agents import set_trace_processors, set_tracing_disabled

    if path is None:
        set_trace_processors([])
        yield None
        return
    from kantan_llm.tracing import SQLiteTracer

    # Absolute: SQLite takes some names, such as ":memory:", for something else than a file.
    tracer = SQLiteTracer(str(path.absolute()))
    try:
        _check_tables(tracer, path)
        processors: list[Any] = [tracer]  # the SDK's interface by shape, not by inheritance
        set_trace_processors(processors)
        # Who names a database wants the traces, whatever the environment says in general.
        set_tracing_disabled(False)
        yield tracer
    finally:
        set_trace_processors([])
        tracer.shutdown()


def _check_tables(tracer: SQLiteTracer, path: Path) -> None:
    """Open the database, which makes its tables, and make sure they are kantan-llm's."""
    try:
        tracer.get_trace("")
        tracer.get_span("")
    except sqlite3.Error as error:
        raise FileArgumentError(path=str(path), reason=str(error)) from error


def check_recorded(tracer: SQLiteTracer, path: Path, trace_id: str | None) -> None:
    """Make sure that a finished run has arrived in the database.

    Raises:
        FileArgumentError: E79, nothing of it is there: a full disk, a file replaced meanwhile.
    """
    try:
        recorded = bool(tracer.get_spans_by_trace(trace_id or ""))
    except sqlite3.Error:
        recorded = False
    if not recorded:
        raise FileArgumentError(path=str(path), reason="the run could not be recorded in it")
