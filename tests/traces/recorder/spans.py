"""Spans for a recorder to write."""

from __future__ import annotations

from typing import Any

from agents import custom_span, trace


def record(*names: str, parent: Any = None) -> None:
    """End a span of each name in the trace that is open."""
    for name in names:
        with custom_span(name, parent=parent):
            pass


def record_trace(*names: str) -> None:
    """End a trace with a span of each name."""
    with trace("w"):
        record(*names)
