"""Traces and spans of the SDK, as a recorder receives them."""

from __future__ import annotations

from typing import Any

from agents import set_trace_processors
from agents.tracing import custom_span, generation_span, trace

from kantan_agents import SQLiteRecorder


def record(
    recorder: SQLiteRecorder, name: str, question: str = "q", answer: str = "a", spans: int = 1
) -> str:
    """Record one trace with some spans; return its id."""
    set_trace_processors([recorder])
    with trace(name) as current:
        for number in range(spans - 1):
            with custom_span(f"{name}-{number}", {"number": number}):
                pass
        with generation_span(input=[{"role": "user", "content": question}], output=[{"content": answer}]):
            pass
    return current.trace_id


def names(store: Any) -> list[str]:
    """Return the names of all traces, the oldest first."""
    return [one.workflow_name for one in store.traces(limit=None)][::-1]
