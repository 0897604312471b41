"""Makes kantan-llm's tracers work with the runs of this library.

``SQLiteTracer`` opens its connection in the thread that ends the first span, and sqlite3 rejects all others,
such as the background loop's. So the tracer gets a connection for all threads, guarded by a lock.

Tracers get strings on a final span: they find no rubric in messages, and no words that JSON escapes.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable
from functools import lru_cache, wraps
from threading import RLock
from typing import Any
from weakref import WeakKeyDictionary

from agents.tracing import get_trace_provider

from kantan_agents.traces.final_span import GenerationSpanData, recorded_export

TRACERS = "kantan_llm.tracing"
"""Until this module is imported, no tracer exists."""

# Methods that use the connection.
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
_SPAN_METHODS = ("on_span_start", "on_span_end")


class _Shared:
    def __init__(self) -> None:
        self.connections: WeakKeyDictionary[Any, tuple[int, Any]] = WeakKeyDictionary()
        self.renew_lock()

    def renew_lock(self) -> None:
        # After a fork, a thread of the parent may hold the old lock forever.
        self.lock = RLock()


_shared = _Shared()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_shared.renew_lock)


def share_sqlite_tracers() -> None:
    """Let all threads use each ``SQLiteTracer``."""
    # The SDK has no public access to its processors.
    multi = getattr(get_trace_provider(), "_multi_processor", None)
    for processor in getattr(multi, "_processors", ()):
        kind: Any = type(processor)
        if not _is_kantan_tracer(kind):
            continue
        _give_texts(processor)
        if hasattr(processor, "_ensure_conn"):
            known = _shared.connections.get(processor)
            if known is None or known != (os.getpid(), processor._conn):
                with _shared.lock:
                    _share(processor)


def _share(tracer: Any) -> None:
    known = _shared.connections.get(tracer)
    if known is None:
        for name in _METHODS:
            setattr(tracer, name, _synchronized(getattr(tracer, name)))
    elif known[0] != os.getpid():
        tracer._conn = None  # SQLite forbids using a connection in a forked child
    own = tracer._ensure_conn()  # creates the tables
    if known != (os.getpid(), own):
        shared = sqlite3.connect(tracer._path, check_same_thread=False)
        shared.row_factory = sqlite3.Row
        _take_over(own, shared, in_memory=not _has_file(shared))
        tracer._conn = shared
    _shared.connections[tracer] = (os.getpid(), tracer._conn)


def _synchronized(method: Any) -> Any:
    @wraps(method)
    def locked(*args: Any, **kwargs: Any) -> Any:
        with _shared.lock:
            return method(*args, **kwargs)

    return locked


def _has_file(connection: sqlite3.Connection) -> bool:
    return any(row["file"] for row in connection.execute("PRAGMA database_list"))


def _take_over(own: sqlite3.Connection, shared: sqlite3.Connection, *, in_memory: bool) -> None:
    try:
        if in_memory:
            own.backup(shared)
        own.close()
    except sqlite3.ProgrammingError:
        # Another thread owns the connection, which commits after every span and closes with the thread.
        return


@lru_cache(maxsize=256)
def _is_kantan_tracer(kind: type) -> bool:
    # Not imported here: before that, no class can be one.
    tracing: Any = sys.modules.get(TRACERS)
    return tracing is not None and issubclass(
        kind, (tracing.OTELTracer, tracing.PrintTracer, tracing.SQLiteTracer)
    )


def _give_texts(tracer: Any) -> None:
    if _SPAN_METHODS[0] not in vars(tracer):
        for name in _SPAN_METHODS:
            setattr(tracer, name, _with_texts(getattr(tracer, name)))


def _with_texts(method: Callable[[Any], None]) -> Callable[[Any], None]:
    @wraps(method)
    def given_texts(span: Any) -> None:
        is_final = isinstance(getattr(span, "span_data", None), GenerationSpanData)
        method(_WithTexts(span) if is_final else span)

    return given_texts


class _WithTexts:
    def __init__(self, span: Any) -> None:
        self._span = span

    def __getattr__(self, name: str) -> Any:
        return getattr(self._span, name)

    def export(self) -> dict[str, Any] | None:
        return recorded_export(self._span)
