"""The data of an SDK span that may be sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
from agents import FunctionSpanData

from kantan_agents.core.interception import active_sdk_agent
from kantan_agents.core.items import parsed
from kantan_agents.core.pipeline import current_run
from kantan_agents.errors import RedactionError
from kantan_agents.models.finish_reasons import finish_reason
from kantan_agents.traces.final_span import recorded_export, with_tool_output
from kantan_agents.traces.recorder.private_errors import WITHHELD, private_error, records_sensitive_data
from kantan_agents.traces.recorder.redaction import Redact, call_redact
from kantan_agents.traces.recorder.snapshot import response_data
from kantan_agents.traces.telemetry import conventions as names
from kantan_agents.traces.telemetry.content import messages_of
from kantan_agents.traces.telemetry.error_types import error_type

_CONTENTS = ("input", "output")


@attrs.frozen
class SentSpan:
    """The data of a span that may be sent.

    ``contents`` are copies of input and answer by attribute. Without ``has_content``, no content of users,
    models and tools may be sent.
    """

    data: dict[str, Any]
    error: dict[str, Any] | None = None
    error_type: str | None = None
    has_content: bool = False
    contents: dict[str, Any] = attrs.field(factory=dict)

    @property
    def problem(self) -> str:
        """The description of the error."""
        if self.error is None:
            return ""
        data = self.error.get("data")
        detail = data.get("error") if isinstance(data, dict) else None
        message = str(self.error.get("message") or "")
        return f"{message}: {detail}" if detail and self.has_content else message


class SpanReader:
    """Reads spans and traces of the SDK."""

    def __init__(
        self, *, content: bool, redact: Redact | None, report: Callable[[RedactionError], None]
    ) -> None:
        self.content = content
        self._redact = redact
        self._report = report

    def trace(self, trace: Any, conversation: str | None) -> tuple[Mapping[str, Any], str, str]:
        """Return the metadata, name and group of a trace."""
        group = getattr(trace, "group_id", None) or conversation
        if self._redact is None:
            return getattr(trace, "metadata", None) or {}, trace.name, str(group or "")
        redacted = self._redacted({**(trace.export() or {}), "group_id": group}, trace.trace_id) or {}
        metadata = redacted.get("metadata")
        name, group = redacted.get("workflow_name"), redacted.get("group_id")
        return metadata if isinstance(metadata, dict) else {}, str(name or ""), str(group or "")

    @property
    def is_plain(self) -> bool:
        """Whether names can be sent at the start, because no ``redact`` may change them."""
        return self._redact is None

    def span(self, span: Any, noted: str | None = None) -> SentSpan:
        """Return the data of an ended span to send."""
        kind_of_error = error_type(span.error, noted)
        has_content = self.content and records_sensitive_data()
        span_data, error = span.span_data, span.error
        if self._redact is None:
            data = _plain(span, span_data) if has_content else _bare(span_data)
        else:
            exported = recorded_export(span) or {}
            data = exported.get("span_data") or {}
            if data.get("type") == "response":
                exported["span_data"] = {**data, **response_data(span_data)}
            redacted = self._redacted(exported, span.span_id)
            if redacted is None:
                data, error = {"type": data.get("type")}, error and {"message": WITHHELD, "data": None}
                return SentSpan(data, error, kind_of_error, has_content=False)
            data, error = dict(redacted.get("span_data") or {}), redacted.get("error")
            if not has_content:
                data = {key: value for key, value in data.items() if key not in _CONTENTS}
        if error is not None and not has_content:
            error = private_error(error)
        return SentSpan(
            data,
            error,
            kind_of_error,
            has_content=has_content,
            contents=_contents(span_data, data) if has_content else {},
        )

    def _redacted(self, exported: dict[str, Any], span_id: str) -> dict[str, Any] | None:
        assert self._redact is not None
        try:
            return call_redact(self._redact, exported, span_id)
        except RedactionError as error:
            self._report(error)
            return None


def _contents(span_data: Any, data: dict[str, Any]) -> dict[str, Any]:
    kind = span_data.type
    if kind in ("generation", "response"):
        is_call = kind == "response"
        response = getattr(span_data, "response", None)
        instructions = _instructions(response) if is_call else None
        reason = None if response is None else finish_reason(response)
        return messages_of(data.get("input"), data.get("output"), instructions, reason)
    if kind == "function":
        found = {names.TOOL_ARGUMENTS: data.get("input"), names.TOOL_RESULT: data.get("output")}
        return {name: parsed(value) for name, value in found.items() if value is not None}
    return {}


def _instructions(response: Any) -> Any:
    """Return the instructions that the Responses API repeats in its answer."""
    said = getattr(response, "instructions", None)
    run, agent = current_run.get(), active_sdk_agent.get()
    if said is None and run is not None and agent is not None and agent.name == run.agent.name:
        return run.instructions
    return said


def _bare(span_data: Any) -> dict[str, Any]:
    """Skip the content and the work of an export."""
    data = {"type": span_data.type}
    for name in _WITHOUT_CONTENT.get(data["type"], ()):
        data[name] = getattr(span_data, name, None)
    return data


def _plain(span: Any, span_data: Any) -> dict[str, Any]:
    exported = span.export() or {}
    data: dict[str, Any] = exported.get("span_data") or {}
    if data.get("type") == "response":
        response = getattr(span_data, "response", None)
        output = None if response is None else list(response.output or ())
        data = {**data, "input": getattr(span_data, "input", None), "output": output}
    elif isinstance(span_data, FunctionSpanData):
        data = with_tool_output(data, span_data)
    return data


_WITHOUT_CONTENT = {
    "agent": ("name", "output_type"),
    "function": ("name",),
    "generation": ("model", "model_config", "usage"),
    "response": ("usage",),
    "handoff": ("from_agent", "to_agent"),
    "guardrail": ("name", "triggered"),
    "mcp_tools": ("server",),
    "custom": ("name", "data"),
    "task": ("name",),
    "turn": ("turn",),
}
