"""Sets the attributes of OpenTelemetry spans after their end."""

from __future__ import annotations

from typing import Any

from opentelemetry.trace import Status, StatusCode

from kantan_agents.core.answers import CUT_SPAN, answer_items, finish_reason_of
from kantan_agents.traces.final_span import GenerationSpanData
from kantan_agents.traces.metadata import JUDGE_SPAN, REFUSAL_SPAN, RUN_SPAN, STOP_SPAN
from kantan_agents.traces.replayed import REPLAYED
from kantan_agents.traces.telemetry import conventions as names
from kantan_agents.traces.telemetry.error_types import UNKNOWN
from kantan_agents.traces.telemetry.measurements import Measurements
from kantan_agents.traces.telemetry.model_calls import of_generation, of_response, tokens
from kantan_agents.traces.telemetry.of_runs import of_metadata, of_refusal, of_verdict
from kantan_agents.traces.telemetry.open_spans import AGENTS, Open
from kantan_agents.traces.telemetry.span_reader import SentSpan
from kantan_agents.traces.telemetry.values import attribute_value, json_text, text_value

_NAMED_BY = {
    names.CHAT: names.REQUEST_MODEL,
    names.EXECUTE_TOOL: names.TOOL_NAME,
    names.INVOKE_AGENT: names.AGENT_NAME,
    names.INVOKE_WORKFLOW: names.AGENT_NAME,
}


def span_name(operation: str, attributes: dict[str, Any]) -> str:
    """Return an operation and its object."""
    return f"{operation} {attributes.get(_NAMED_BY[operation]) or ''}".rstrip()


class Ends:
    """Sets the attributes of a span, records metrics, and ends it."""

    def __init__(self, measurements: Measurements) -> None:
        self._measurements = measurements
        self._of_kind = {
            "agent": self._agent,
            "custom": self._custom,
            "function": self._function,
            "generation": self._generation,
            "guardrail": self._guardrail,
            "handoff": self._handoff,
            "mcp_tools": self._listing,
            "response": self._response,
        }

    def of_span(self, data: Any, seen: SentSpan, opened: Open, is_own: bool) -> None:
        """Add an SDK span to its OpenTelemetry span or, without ``is_own``, to the one it is part of.

        It reads only immutable parts of ``data``.
        """
        say = self._of_kind.get(data.type)
        if say is not None:
            say(data, seen, opened, is_own)
        elif is_own or opened.error is None:
            _fail(opened, seen)

    def finish(self, opened: Open, ended: int) -> None:
        """Set all attributes, and end a span at ``ended`` (nanoseconds since 1970)."""
        span = opened.span
        if opened.is_recording:
            said: dict[str, Any] = {
                **of_metadata(opened.metadata),
                **opened.attributes,
                **opened.used,
                **opened.shared,
            }
            if opened.error is not None:
                said[names.ERROR_TYPE] = opened.error
            span.set_attributes(said)
            if opened.operation:
                span.update_name(span_name(opened.operation, said))
            if opened.operation in AGENTS:
                self._measurements.agent(opened)
        span.end(ended)

    def _generation(self, data: Any, seen: SentSpan, opened: Open, is_own: bool) -> None:
        if isinstance(data, GenerationSpanData):
            opened.attributes |= _contents(seen)
            _fail(opened, seen)
            return
        known = opened.attributes if is_own and not opened.folded else {}
        found = of_generation(seen.data, known)
        if items := answer_items(data.output):
            found[names.FINISH_REASONS] = [finish_reason_of(items)]
        self._model_call(found, seen, opened, is_own=is_own)

    def _response(self, data: Any, seen: SentSpan, opened: Open, is_own: bool) -> None:
        found = of_response(getattr(data, "response", None))
        if names.REQUEST_MODEL not in opened.attributes and names.RESPONSE_MODEL in found:
            found[names.REQUEST_MODEL] = found[names.RESPONSE_MODEL]
        self._model_call(found, seen, opened, is_own=is_own)

    def _model_call(self, found: dict[str, Any], seen: SentSpan, opened: Open, *, is_own: bool) -> None:
        # A middleware's span around the model's has only the redacted content.
        is_around = is_own and opened.folded
        opened.folded = opened.folded or not is_own
        usage = tokens(seen.data.get("usage"))
        opened.attributes |= {**({} if is_around else found), **(usage or {}), **_contents(seen)}
        _fail(opened, seen)
        if is_around:
            return
        self._measurements.model_call(opened, usage)
        agent = opened.of_agent()
        if agent is not None:
            for name, count in (usage or {}).items():
                agent.used[name] = agent.used.get(name, 0) + count

    def _function(self, data: Any, seen: SentSpan, opened: Open, _is_own: bool) -> None:
        opened.attributes |= {
            names.TOOL_NAME: text_value(seen.data.get("name") or ""),
            names.TOOL_TYPE: "extension" if getattr(data, "mcp_data", None) else "function",
            **_contents(seen),
        }
        call_id = opened.attributes.get(names.TOOL_CALL_ID)
        if call_id is not None:  # from a model
            opened.attributes[names.TOOL_CALL_ID] = text_value(call_id)
        if opened.error is None:  # a denial is known already
            _fail(opened, seen)
        if hasattr(data, REPLAYED):  # an earlier process executed and measured this call, and sent its span
            opened.attributes[names.REPLAYED] = True
        else:
            self._measurements.tool(opened)

    def _agent(self, _data: Any, seen: SentSpan, opened: Open, is_own: bool) -> None:
        kind = seen.data.get("output_type")
        if kind is not None:
            opened.attributes[names.OUTPUT_TYPE] = "text" if kind == "str" else "json"
        if is_own:
            opened.agent = opened.attributes[names.AGENT_NAME] = text_value(seen.data.get("name") or "")
        if opened.error is None:
            _fail(opened, seen)

    def _custom(self, data: Any, seen: SentSpan, opened: Open, is_own: bool) -> None:
        name, said = data.name, seen.data.get("data")
        said = said if isinstance(said, dict) else {}
        if name == RUN_SPAN:
            _note_run(said, opened, is_own=is_own)
        elif name == REFUSAL_SPAN:
            opened.span.add_event(names.TOOL_REFUSED, of_refusal(said, has_content=seen.has_content))
            if opened.operation == names.EXECUTE_TOOL:
                opened.error = str(data.data.get("code") or UNKNOWN)
                opened.span.set_status(Status(StatusCode.ERROR, "denied by the tool rules"))
        elif name == JUDGE_SPAN:
            event = of_verdict(said, None if is_own else opened.agent, has_content=seen.has_content)
            if event is not None:
                opened.span.add_event(names.EVALUATION_RESULT, event)
        elif name == STOP_SPAN:
            turns = said.get("turns")
            opened.span.add_event(names.STOPPED, {names.TURNS: turns} if isinstance(turns, int) else None)
        elif name == CUT_SPAN:
            _note_cut(data.data["finish_reason"], opened)
        elif seen.has_content and said:
            opened.attributes[names.DATA] = json_text(said)
        if is_own:
            _fail(opened, seen)

    def _handoff(self, _: Any, seen: SentSpan, opened: Open, _is_own: bool) -> None:
        between = {names.FROM_AGENT: seen.data.get("from_agent"), names.TO_AGENT: seen.data.get("to_agent")}
        event = {name: attribute_value(agent) for name, agent in between.items() if agent is not None}
        opened.span.add_event(names.HANDED_OFF, event)
        if opened.error is None:
            _fail(opened, seen)

    def _guardrail(self, _: Any, seen: SentSpan, opened: Open, _is_own: bool) -> None:
        opened.attributes[names.TRIGGERED] = bool(seen.data.get("triggered"))
        _fail(opened, seen)

    def _listing(self, _: Any, seen: SentSpan, opened: Open, _is_own: bool) -> None:
        server = seen.data.get("server")
        if isinstance(server, str):
            opened.attributes[names.SERVER] = text_value(server)
        _fail(opened, seen)


def _note_run(metadata: dict[str, Any], opened: Open, *, is_own: bool) -> None:
    opened.metadata = metadata
    if is_own:
        opened.agent = text_value(str(metadata.get("agent_name") or opened.agent or ""))


def _note_cut(reason: str, opened: Open) -> None:
    said = {names.FINISH_REASONS: [reason]}
    opened.span.add_event(names.CUT_OFF, said)
    if opened.operation == names.CHAT:
        opened.attributes |= said


def _contents(seen: SentSpan) -> dict[str, str]:
    return {name: json_text(content) for name, content in seen.contents.items()}


def _fail(opened: Open, seen: SentSpan) -> None:
    if seen.error_type is not None:
        opened.error = seen.error_type
        opened.span.set_status(Status(StatusCode.ERROR, text_value(seen.problem) or None))
