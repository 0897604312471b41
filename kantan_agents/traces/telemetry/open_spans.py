"""The open spans of OpenTelemetry."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import attrs
from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanContext

from kantan_agents.core.pipeline import Run


@attrs.define(eq=False, slots=True)
class Open:
    """An open span.

    ``folded``: the SDK span of its agent or model call is part of it. ``shared`` are attributes of inner
    spans too. ``started`` is in seconds of ``time.perf_counter``. ``raised`` is the error type of a tool's
    exception, ``error`` the operation's.
    """

    span: Span
    context: Context
    outer: Context
    owner: str
    operation: str = ""
    parent: Open | None = None
    agent: str | None = None
    begins_with: str | None = None
    prompt: dict[str, Any] = attrs.field(factory=dict)
    folded: bool = False
    attributes: dict[str, Any] = attrs.field(factory=dict)
    metadata: Mapping[str, Any] = attrs.field(factory=dict)
    shared: Mapping[str, str] = attrs.field(factory=dict)
    used: dict[str, int] = attrs.field(factory=dict)
    started: float = attrs.field(factory=time.perf_counter)
    seconds: float = 0.0
    raised: str | None = None
    error: str | None = None
    is_recording: bool = True
    is_over: bool = False
    run: Run | None = None

    def of_agent(self) -> Open | None:
        """Return the innermost agent span, which may be this one."""
        found: Open | None = self
        while found is not None and found.operation not in AGENTS:
            found = found.parent
        return found


AGENTS = ("invoke_agent", "invoke_workflow")


class CurrentSpan:
    """Makes open spans current in their tasks.

    A context variable can be reset only in the task that set it, but a span may end in another one. So at its
    end the context around the span is attached, and only in a task where the span is still current.
    """

    def __init__(self) -> None:
        self._key = contexts.create_key("kantan-agents-open-span")

    def find(self) -> Open | None:
        """Return the innermost open span of this task."""
        found = contexts.get_value(self._key)
        return found if isinstance(found, Open) else None

    def inside(self, span: Span, around: Context) -> Context:
        """Return the context for code inside ``span``, for ``enter``."""
        return trace.set_span_in_context(span, around)

    def enter(self, opened: Open) -> None:
        """Make a span current in this task."""
        opened.context = contexts.set_value(self._key, opened, opened.context)
        contexts.attach(opened.context)

    def leave(self, opened: Open) -> None:
        """Make the span around an ended current one current."""
        opened.is_over = True
        opened.seconds = time.perf_counter() - opened.started
        if contexts.get_value(self._key) is not opened:
            return
        around = opened.outer
        while True:
            above = contexts.get_value(self._key, around)
            if not isinstance(above, Open) or not above.is_over:
                break
            around = above.outer  # it has ended before the spans inside it
        contexts.attach(around)

    def around(self, parent: Open | None) -> Context:
        """Return the SDK parent's context, or the application's span below it."""
        present = contexts.get_current()
        if parent is None:
            return present
        inner = contexts.get_value(self._key, present)
        if inner is parent:
            return present  # also inside a span of the application
        current = trace.get_current_span(present).get_span_context()
        is_ours = isinstance(inner, Open) and current == inner.span.get_span_context()
        if current.is_valid and not is_ours and current.trace_id == parent.span.get_span_context().trace_id:
            return present
        return contexts.set_value(self._key, parent, trace.set_span_in_context(parent.span, present))


def otel_id(context: SpanContext) -> str:
    """Format a trace id as 32 hexadecimal digits."""
    return trace.format_trace_id(context.trace_id)
