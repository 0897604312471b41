"""Writes trace databases with kantan-llm's unmodified tracer, called as the SDK calls it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from itertools import count
from pathlib import Path
from typing import Any

import attrs
from kantan_llm.tracing import SQLiteTracer

from kantan_agents.traces.figure_tables import keep_figures
from kantan_agents.traces.schema import make_indexes, make_tables
from kantan_agents.traces.store.connection import changing

_NUMBERS = count(1)

NOON = datetime(2025, 6, 1, 12, tzinfo=timezone.utc)


@attrs.frozen
class Exported:
    """The object that a trace processor receives: it has an ``export`` method."""

    data: dict[str, Any]
    _trace: Any = None

    def export(self) -> dict[str, Any]:
        return self.data


class SampleDatabase:
    """A database to write to; the parameters of ``trace`` and ``span`` have defaults."""

    def __init__(self, path: Path, *, indexed: bool = True) -> None:
        self.path = self.file = path
        if indexed:
            make_tables(path)
        self.tracer = SQLiteTracer(str(path))
        self.tracer.get_trace("")
        # Tests need no protection from power cuts; syncing after every span would take most of their time.
        self.tracer._conn.execute("PRAGMA synchronous = OFF")
        if indexed:
            with changing(path) as connection:
                make_indexes(connection)
                keep_figures(connection)

    def trace(
        self,
        trace_id: str | None = None,
        metadata: Any = None,
        name: str = "Agent workflow",
        group: Any = None,
    ) -> str:
        trace_id = trace_id or f"trace_{next(_NUMBERS):032x}"
        self.tracer.on_trace_start(
            Exported(
                {"id": trace_id, "workflow_name": name, "group_id": group, "metadata": metadata},
            )
        )
        return trace_id

    def span(
        self,
        trace_id: str,
        kind: str = "generation",
        *,
        start: float | datetime | None = 0,
        seconds: float | None = 1,
        parent: str | None = None,
        error: Any = None,
        **data: Any,
    ) -> str:
        span_id = f"span_{next(_NUMBERS):024x}"
        started = NOON + timedelta(seconds=start) if isinstance(start, (int, float)) else start
        ended = started + timedelta(seconds=seconds) if started and seconds is not None else None
        exported = {
            "id": span_id,
            "trace_id": trace_id,
            "parent_id": parent,
            "started_at": started.isoformat() if started else None,
            "ended_at": ended.isoformat() if ended else None,
            "span_data": {"type": kind, **data},
            "error": error,
        }
        self.tracer.on_span_end(Exported(exported, Exported({"id": trace_id, "metadata": None})))
        return span_id

    def judge(self, trace_id: str, score: Any, **more: Any) -> str:
        rubric = {"score": score, "comments": ["tone off"], "comment": "tone off"}
        return self.span(
            trace_id, "custom", name="judge", data={"output_kind": "judge", "rubric": rubric}, **more
        )

    def tool(self, trace_id: str, name: str, **more: Any) -> str:
        return self.span(trace_id, "function", name=name, input="{}", output="done", **more)

    def run(self, question: str = "q", answer: str | None = "a", error: Any = None, **metadata: Any) -> str:
        """Write a complete run with its own trace."""
        metadata.setdefault("agent_run_id", f"{next(_NUMBERS):032x}")
        trace_id = self.trace(f"trace_{metadata['agent_run_id']}", metadata)
        self.span(trace_id, input=question, output=answer, error=error)
        return trace_id

    def inner_run(
        self,
        trace_id: str,
        *,
        parent: str | None = None,
        error: Any = None,
        seconds: float | None = 1,
        **metadata: Any,
    ) -> str:
        """Write the span of a run inside a trace, and return its id; with no ``seconds``, it has no end."""
        placed: dict[str, Any] = {"parent": parent, "error": error, "seconds": seconds}
        return self.span(trace_id, "custom", name="agent_run", data=metadata, **placed)


@contextmanager
def open_sample(path: Path, **options: Any) -> Iterator[SampleDatabase]:
    """Create a database, and close its connection at the end."""
    database = SampleDatabase(path, **options)
    try:
        yield database
    finally:
        database.tracer.shutdown()
