"""kantan-llm's SQLite tracer, used from more than one thread.

``SQLiteTracer`` opens its connection in whichever thread sends the first span, and sqlite3 then refuses
it to every other thread: the spans of a sync ``run``, which happen on the background loop's thread,
would be lost, or the file could no longer be searched from the thread that ran the agent. The
connection is reopened so that all threads may use it; SQLite itself serialises them.
"""

from __future__ import annotations

import os
import sqlite3
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from agents.tracing import get_trace_provider

_lock = Lock()
_shared: WeakKeyDictionary[Any, tuple[int, Any]] = WeakKeyDictionary()


def share_sqlite_tracers() -> None:
    """Make every ``SQLiteTracer`` among the SDK's trace processors usable from all threads."""
    for processor in _processors():
        if hasattr(processor, "_ensure_conn") and _is_sqlite_tracer(processor):
            with _lock:
                _share(processor)


def _processors() -> tuple[Any, ...]:
    # There is no public way to ask the SDK which processors it has.
    multi = getattr(get_trace_provider(), "_multi_processor", None)
    return tuple(getattr(multi, "_processors", ()))


def _is_sqlite_tracer(processor: Any) -> bool:
    from kantan_llm.tracing import SQLiteTracer

    return isinstance(processor, SQLiteTracer)


def _share(tracer: Any) -> None:
    current = tracer._conn
    pid = os.getpid()
    if current is not None and _shared.get(tracer) == (pid, current):
        return
    if current is None or _shared.get(tracer, (pid,))[0] != pid:
        # Never opened, or opened before a fork: SQLite forbids carrying a connection into the child.
        tracer._conn = None
    else:
        _close(current)
        tracer._conn = None
    own = tracer._ensure_conn()  # makes the tables
    shared = sqlite3.connect(tracer._path, check_same_thread=False)
    shared.row_factory = sqlite3.Row
    tracer._conn = shared
    own.close()
    _shared[tracer] = (pid, shared)


def _close(connection: sqlite3.Connection) -> None:
    try:
        connection.close()
    except sqlite3.ProgrammingError:
        # It belongs to another thread, which has committed after every span; its end closes it.
        return
