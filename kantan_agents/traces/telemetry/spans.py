"""Turns the SDK's spans and traces into OpenTelemetry spans."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import SpanContext, SpanKind, Tracer

from kantan_agents.core.pipeline import current_run
from kantan_agents.traces.metadata import RUN_SPAN
from kantan_agents.traces.telemetry import conventions as names
from kantan_agents.traces.telemetry.ends import Ends, span_name
from kantan_agents.traces.telemetry.error_types import forget_errors, note_errors
from kantan_agents.traces.telemetry.later import Later
from kantan_agents.traces.telemetry.merged_spans import is_around_call, is_of_target, part_of
from kantan_agents.traces.telemetry.model_calls import of_generation, requested
from kantan_agents.traces.telemetry.of_runs import (
    approvals_given,
    approvals_needed,
    conversation_of,
    prompt_of,
    shared_of,
)
from kantan_agents.traces.telemetry.open_spans import AGENTS, CurrentSpan, Open, otel_id
from kantan_agents.traces.telemetry.own_ids import OwnIds
from kantan_agents.traces.telemetry.span_reader import SpanReader
from kantan_agents.traces.telemetry.values import name_value

_ENDED_TRACES = 1_024
_MOST_LATE = 1_024
# For samplers; everything else is set at the end.
_AT_START = (names.OPERATION, names.AGENT_NAME, names.TOOL_NAME, names.PROVIDER, names.REQUEST_MODEL)


class Spans:
    """The OpenTelemetry spans for the SDK's.

    A span starts immediately, because code inside needs it; another thread sets its attributes. The SDK's
    spans of tasks, turns, handoffs, denials and verdicts become part of the span around them.
    """

    def __init__(
        self,
        tracer: Tracer,
        ends: Ends,
        reader: SpanReader,
        later: Later,
        ids: OwnIds | None,
        user_key: str | None,
    ) -> None:
        self._tracer = tracer
        self._reader = reader
        self._later = later
        self._ids = ids
        self._user_key = user_key
        self._current = CurrentSpan()
        self._ends = ends
        self._opened: dict[str, Open] = {}
        self._roots: dict[str, Open] = {}
        self._inside: dict[str, set[str]] = {}
        self._ended: OrderedDict[str, SpanContext] = OrderedDict()
        self._late: OrderedDict[str, None] = OrderedDict()

    # -- traces

    def trace_started(self, sdk_trace: Any) -> None:
        """Start the span of a trace."""
        trace_id: str = sdk_trace.trace_id
        own = getattr(sdk_trace, "metadata", None) or {}
        is_run = "agent_run_id" in own
        conversation = conversation_of(current_run.get()) if is_run else None
        metadata, workflow, conversation = self._reader.trace(sdk_trace, conversation)
        workflow = name_value(workflow)
        attributes: dict[str, Any] = {
            names.OPERATION: names.INVOKE_AGENT if is_run else names.INVOKE_WORKFLOW,
            names.AGENT_NAME: name_value(metadata.get("agent_name") or "") if is_run else workflow,
            names.TRACE_ID: trace_id,
            names.WORKFLOW: workflow,
        }
        if self._ids is not None:
            self._ids.next_is(trace_id)
        opened = self._start(None, trace_id, trace_id, attributes, prompt_of(metadata))
        if self._ids is not None:
            self._ids.next_is("")  # not used inside a trace of the application
        opened.metadata = metadata
        opened.shared = shared_of(conversation, metadata, self._user_key)
        opened.begins_with = own.get("agent_name")
        self._roots[trace_id] = opened
        self._inside[trace_id] = set()
        if is_run and opened.is_recording:
            _note_approvals(opened)
        _link(sdk_trace, opened)

    def trace_ended(self, sdk_trace: Any) -> None:
        """End the span of a trace."""
        trace_id = sdk_trace.trace_id
        # The SDK cancels tools without waiting, so their spans end a moment later or never.
        for span_id in self._inside.pop(trace_id, ()):
            self._late[span_id] = None
        while len(self._late) > _MOST_LATE:
            self._give_up(self._late.popitem(last=False)[0])
        opened = self._roots.pop(trace_id, None)
        if opened is None:
            return
        self._ended[trace_id] = opened.span.get_span_context()
        while len(self._ended) > _ENDED_TRACES:
            self._ended.popitem(last=False)
        _note_waiting(opened)
        self._finish(opened)

    # -- spans

    def span_started(self, span: Any) -> None:
        """Start a span, unless it joins the span around it."""
        span_id: str = span.span_id
        trace_id: str = span.trace_id
        parent = self._opened.get(span.parent_id) or self._roots.get(trace_id)
        opened = part_of(span, parent)
        if opened is not None and self._reader.is_plain and is_of_target(span.span_data):
            opened.prompt = prompt_of(span.span_data.data)  # for the model call that follows
        if opened is None:
            attributes, prompt = self._beginning(span, parent)
            opened = self._start(parent, span_id, trace_id, attributes, prompt)
            if opened.operation == names.INVOKE_AGENT and span.span_data.type == "custom":
                self._note_run(span.span_data.data, opened)
            elif opened.operation == names.EXECUTE_TOOL and opened.is_recording:
                note_errors(span, opened)
        self._opened[span_id] = opened
        inside = self._inside.get(trace_id)
        if inside is not None:
            inside.add(span_id)

    def _note_run(self, metadata: dict[str, Any], opened: Open) -> None:
        """Note an inner run; the outer run's conversation wins."""
        opened.begins_with = metadata.get("agent_name")
        if self._reader.is_plain:
            conversation = conversation_of(current_run.get())
            opened.shared = {**shared_of(conversation, metadata, self._user_key), **opened.shared}

    def span_ended(self, span: Any) -> None:
        """End a span, or add its data to the span that it joined."""
        inside = self._inside.get(span.trace_id)
        if inside is not None:
            inside.discard(span.span_id)
        elif self._late:
            self._late.pop(span.span_id, None)
        opened = self._opened.pop(span.span_id, None)
        if opened is None:
            return
        is_own = opened.owner == span.span_id
        if is_own and opened.operation == names.EXECUTE_TOOL:
            forget_errors(span)
        try:
            if opened.is_recording:
                self._say(span, opened, is_own=is_own)
        finally:
            if is_own:
                _note_waiting(opened)
                self._finish(opened)

    def _give_up(self, span_id: str) -> None:
        opened = self._opened.pop(span_id, None)
        if opened is not None and opened.owner == span_id:
            self._finish(opened)

    def note_tool_call(self, call_id: str) -> None:
        """Note the call id on a tool's span, in the task that is starting the call."""
        opened = self._current.find()
        if call_id and opened is not None and opened.operation == names.EXECUTE_TOOL:
            opened.attributes[names.TOOL_CALL_ID] = call_id

    def _say(self, span: Any, opened: Open, *, is_own: bool) -> None:
        data = span.span_data
        if not is_own and data.type in ("task", "turn") and span.error is None:
            return
        self._later.add(self._ends.of_span, data, self._reader.span(span, opened.raised), opened, is_own)

    def _beginning(self, span: Any, parent: Open | None) -> tuple[dict[str, Any], dict[str, Any]]:
        data = span.span_data
        kind = data.type
        is_plain = self._reader.is_plain
        agent = None if parent is None else parent.of_agent()
        prompt = {} if agent is None else agent.prompt
        found: dict[str, Any] = {names.TRACE_ID: span.trace_id, names.SPAN_ID: span.span_id}
        if kind in ("generation", "response"):
            known = requested() if is_plain else {}
            if kind == "generation" and is_plain and not is_around_call(data):
                known |= of_generation({"model": data.model, "model_config": data.model_config}, known)
            known.setdefault(names.PROVIDER, names.UNKNOWN_PROVIDER)
            return {names.OPERATION: names.CHAT, **found, **known, **prompt}, prompt
        name = name_value(data.name) if is_plain and kind in ("function", "agent") else ""
        if kind == "function":
            return {names.OPERATION: names.EXECUTE_TOOL, **found, names.TOOL_NAME: name}, prompt
        if kind == "agent":
            return {names.OPERATION: names.INVOKE_AGENT, **found, names.AGENT_NAME: name}, {}
        if kind == "custom" and data.name == RUN_SPAN:
            metadata = data.data if is_plain else {}
            name = name_value(metadata.get("agent_name") or "")
            return {names.OPERATION: names.INVOKE_AGENT, **found, names.AGENT_NAME: name}, prompt_of(metadata)
        return {**found, _NAME: self._named(kind, data)}, prompt

    def _named(self, kind: str, data: Any) -> str:
        name = getattr(data, "name", None) or getattr(data, "server", None)
        if not isinstance(name, str) or not self._reader.is_plain:
            return kind
        return name_value(name) if kind == "custom" else f"{kind} {name_value(name)}"

    def _start(
        self,
        parent: Open | None,
        owner: str,
        trace_id: str,
        attributes: dict[str, Any],
        prompt: dict[str, Any],
    ) -> Open:
        around = self._around(parent, trace_id)
        operation: str = attributes.get(names.OPERATION, "")
        name = attributes.pop(_NAME, None) or span_name(operation, attributes)
        at_start = {key: attributes[key] for key in _AT_START if key in attributes}
        kind = SpanKind.CLIENT if operation == names.CHAT else SpanKind.INTERNAL
        span = self._tracer.start_span(name, around, kind, at_start)
        opened = Open(
            span=span,
            context=trace.set_span_in_context(span, around),
            outer=around,
            owner=owner,
            operation=operation,
            parent=parent,
            agent=attributes.get(names.AGENT_NAME) if operation in AGENTS else None,
            prompt=prompt,
            attributes=attributes,
            shared={} if parent is None else parent.shared,
            is_recording=span.is_recording(),
            run=current_run.get() if operation == names.INVOKE_AGENT else None,
        )
        self._current.enter(opened)
        return opened

    def _around(self, parent: Open | None, trace_id: str) -> Context:
        around = self._current.around(parent)
        ended = self._ended.get(trace_id) if parent is None else None
        if ended is None:
            return around
        return trace.set_span_in_context(trace.NonRecordingSpan(ended), around)

    def _finish(self, opened: Open) -> None:
        if not opened.is_over:
            self._current.leave(opened)
            self._later.add(self._ends.finish, opened, time.time_ns())


_NAME = ""


def _note_approvals(opened: Open) -> None:
    for event in approvals_given(current_run.get()):
        opened.attributes[names.RESUMED] = True
        opened.span.add_event(names.APPROVAL_GIVEN, event)


def _note_waiting(opened: Open) -> None:
    if opened.operation == names.INVOKE_AGENT and opened.run is not None:
        for event in approvals_needed(opened.run):
            opened.span.add_event(names.APPROVAL_NEEDED, event)


def _link(sdk_trace: Any, opened: Open) -> None:
    """Add OpenTelemetry's id before a recorder copies the trace's metadata."""
    context = opened.span.get_span_context()
    metadata = getattr(sdk_trace, "metadata", None)
    if context.is_valid and (metadata is None or isinstance(metadata, dict)):
        sdk_trace.metadata = {**(metadata or {}), names.OTEL_TRACE_ID: otel_id(context)}
