"""Tracing in one line."""

from __future__ import annotations

import os
from typing import Any, TypedDict

import kantan_llm.tracing
from agents import set_trace_processors
from typing_extensions import Unpack

from kantan_agents.tracing.recorder.recorder import SQLiteRecorder
from kantan_agents.tracing.recorder.snapshot import Redact

DEFAULT_PATH = "traces.sqlite3"


class RecorderOptions(TypedDict, total=False):
    """The options of ``SQLiteRecorder``, which documents them."""

    max_queue: int
    max_queue_bytes: int
    max_wait: float
    flush_interval: float
    redact: Redact | None
    flush_on_sigterm: bool


def record_traces(
    path: str | os.PathLike[str] = DEFAULT_PATH, **options: Unpack[RecorderOptions]
) -> SQLiteRecorder:
    """Record all traces, the SDK's and kantan-llm's, in the database at ``path`` and nowhere else.

    The SDK's own exporter, which sends traces to OpenAI, is replaced, and so is every other trace
    processor: to keep them, give a ``SQLiteRecorder`` to ``add_trace_processor``.

    Args:
        path: The database file, as for ``SQLiteRecorder``.
        **options: As for ``SQLiteRecorder``.

    Returns:
        The recorder.

    Raises:
        TraceDatabaseError: E60, the path is a directory or its directory does not exist.
        InvalidOptionError: E75, for a bad option.
    """
    recorder = SQLiteRecorder(path, **options)
    processors: list[Any] = [recorder]  # kantan-llm has an interface of its own, of the same shape
    set_trace_processors(processors)
    kantan_llm.tracing.set_trace_processors(processors)
    return recorder
