"""kantan-llm's SQLite tracer, used from more than one thread.

``SQLiteTracer`` opens its connection in whichever thread sends the first span, and sqlite3 then refuses
it to every other thread: the spans of a sync ``run``, which happen on the background loop's thread,
would be lost, or the file could no longer be searched from the thread that ran the agent. So the
connection is reopened for all threads, and a lock sees to it that one of them uses it at a time.
"""

from __future__ import annotations

import os
import sqlite3
from functools import wraps
from threading import RLock
from typing import Any
from weakref import WeakKeyDictionary

from agents.tracing import get_trace_provider

# Everything of a tracer that uses its connection.
_METHODS = (
    "on_trace_start",
    "on_trace_end",
    "on_span_end",
    "search_traces",
    "search_spans",
    "get_trace",
    "get_span",
    "get_spans_by_trace",
    "get_spans_since",
    "force_flush",
    "shutdown",
)


class _Shared:
    """What is known of the tracers that all threads use: the process and connection of each."""

    def __init__(self) -> None:
        self.connections: WeakKeyDictionary[Any, tuple[int, Any]] = WeakKeyDictionary()
        self.renew_lock()

    def renew_lock(self) -> None:
        # After a fork: a thread of the parent may have held it, nobody would ever release it.
        self.lock = RLock()


_shared = _Shared()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_shared.renew_lock)


def share_sqlite_tracers() -> None:
    """Make every ``SQLiteTracer`` among the SDK's trace processors usable from all threads."""
    for processor in _processors():
        if hasattr(processor, "_ensure_conn") and _is_sqlite_tracer(processor):
            known = _shared.connections.get(processor)
            if known is None or known != (os.getpid(), processor._conn):
                with _shared.lock:
                    _share(processor)


def _processors() -> tuple[Any, ...]:
    # There is no public way to ask the SDK which processors it has.
    multi = getattr(get_trace_provider(), "_multi_processor", None)
    return tuple(getattr(multi, "_processors", ()))


def _is_sqlite_tracer(processor: Any) -> bool:
    from kantan_llm.tracing import SQLiteTracer

    return isinstance(processor, SQLiteTracer)


def _share(tracer: Any) -> None:
    known = _shared.connections.get(tracer)
    if known is None:
        for name in _METHODS:
            setattr(tracer, name, _one_at_a_time(getattr(tracer, name)))
    elif known[0] != os.getpid():
        tracer._conn = None  # SQLite forbids carrying a connection into a forked child
    own = tracer._ensure_conn()  # makes the tables
    if known != (os.getpid(), own):
        shared = sqlite3.connect(tracer._path, check_same_thread=False)
        shared.row_factory = sqlite3.Row
        _take_over(own, shared, in_memory=not _has_file(shared))
        tracer._conn = shared
    _shared.connections[tracer] = (os.getpid(), tracer._conn)


def _one_at_a_time(method: Any) -> Any:
    @wraps(method)
    def locked(*args: Any, **kwargs: Any) -> Any:
        with _shared.lock:
            return method(*args, **kwargs)

    return locked


def _has_file(connection: sqlite3.Connection) -> bool:
    return any(row["file"] for row in connection.execute("PRAGMA database_list"))


def _take_over(own: sqlite3.Connection, shared: sqlite3.Connection, *, in_memory: bool) -> None:
    """Close the tracer's own connection; what it holds in memory only moves to the shared one."""
    try:
        if in_memory:
            own.backup(shared)
        own.close()
    except sqlite3.ProgrammingError:
        # It belongs to another thread, which has committed after every span; its end closes it.
        return
