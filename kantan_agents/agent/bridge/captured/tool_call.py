"""The capture of one tool call."""

from __future__ import annotations

import dataclasses
from asyncio import CancelledError
from time import perf_counter
from typing import Any

import msgspec
from agents import ToolOutputFileContent, ToolOutputImage, ToolOutputText

from kantan_agents.agent.bridge.captured.collector import Collector, error_data, parent_call
from kantan_agents.agent.bridge.captured.definitions import encode, tool_data
from kantan_agents.agent.bridge.captured.prompts_and_rules import shared_rules
from kantan_agents.agent.bridge.captured.tool_lists import shared_tools
from kantan_agents.core.interception import ToolCall, is_redacted, redacted_data
from kantan_agents.core.pipeline import Run
from kantan_agents.errors import code_of
from kantan_agents.tool_rules import Decision, RuleLayers, ToolFacts
from kantan_agents.tools.received_arguments import is_unchanged
from kantan_agents.traces.capture.canonical import canonical, decode
from kantan_agents.traces.capture.shared import Shared

_CONTENT = (ToolOutputText, ToolOutputImage, ToolOutputFileContent)
_RESULTS = ("ShellResult", "ApplyPatchResult")
_PERMITTED: dict[str, Any] = {"is_allowed": True}


class ToolCallCapture:
    """A started tool call. The call refers to this object, so it must not refer back."""

    def __init__(self, capture: Collector, call: ToolCall, data: dict[str, Any]) -> None:
        self._capture = capture
        self._result: bytes | None = None
        self._returned: str | None = None
        self._given = call.arguments
        self.data = data
        self._begun = perf_counter()

    def found(self, tool: Any) -> None:
        """Capture the tool, if it was unknown at the start."""
        try:
            self.data["tool"] = _shared_tool(self._capture.run, tool)
        except Exception as error:  # noqa: BLE001 - recording must not fail a run
            self._capture.failed("a tool", error)

    def decided(
        self, facts: ToolFacts, layers: RuleLayers, decision: Decision | None, arguments: str
    ) -> None:
        """Capture the last decision of the rules, with the checked arguments."""
        try:
            if arguments != self._given:
                self.data["has_other_arguments"] = True
            self._add_decision(facts, layers, decision)
        except Exception as error:  # noqa: BLE001 - recording must not fail a run
            self._capture.failed("a decision of the rules", error)

    def _add_decision(self, facts: ToolFacts, layers: RuleLayers, decision: Decision | None) -> None:
        data = self.data
        data["decision"] = _PERMITTED if decision is None else _decision_data(layers, decision)
        start = self._capture.rules
        if layers is not start:
            rules = shared_rules(layers)
            if start is None or rules.value != shared_rules(start).value:
                data["rules"] = rules
        if len(facts.names) > 1:
            data["names"] = list(facts.names)
        if facts.parameter is not None:
            data["parameter"] = facts.parameter
        if facts.fold is not None:
            data["folds"] = True
        if facts.origin is not None:
            origin = facts.origin
            data["origin"] = {"own": origin.own, "prefixed": dict(origin.prefixed), "chosen": origin.chosen}
        received = _received(facts, data["arguments"])
        if received:
            data["received"] = msgspec.Raw(encode(redacted_data(self._capture.run, received)))

    def returned(self, result: Any) -> None:
        """Capture the result of the tool's last execution."""
        try:
            self.data.pop("failure", None)
            if _is_content(result):
                self.data["is_content"] = True
            self._result = encode(redacted_data(self._capture.run, result_data(result)))
            self._returned = result if type(result) is str else None
        except Exception as error:  # noqa: BLE001 - recording must not fail a run
            self._capture.failed("the result of a tool", error)

    def raised(self, error: BaseException) -> None:
        """Capture the error of the tool's last execution."""
        try:
            self._result = self._returned = None
            self.data["failure"] = error_data(self._capture.run, error)
        except Exception as raised:  # noqa: BLE001 - recording must not fail a run
            self._capture.failed("the error of a tool", raised)

    def ended(self, call: ToolCall, output: Any, error: BaseException | None) -> None:
        """Capture the output that the model gets, or the error."""
        self.data["seconds"] = perf_counter() - self._begun
        try:
            self._add_end(call.refusal, output, error)
        except Exception as raised:  # noqa: BLE001 - recording must not fail a run
            self._capture.failed("the result of a tool", raised)

    def _add_end(self, refusal: Exception | None, output: Any, error: BaseException | None) -> None:
        data, run = self.data, self._capture.run
        if refusal is not None and data.get("decision", _PERMITTED)["is_allowed"]:
            # Rejected for another reason than the rules: arguments that are not JSON, an unknown tool.
            data["decision"] = {"is_allowed": False, "code": code_of(refusal)}
        if error is not None:
            data["error"] = error_data(run, error)
            if isinstance(error, CancelledError):
                # After a timeout, the SDK invents a result, which the next request contains.
                self._capture.requests.cancelled[data["call_id"]] = data
        else:
            packed = self._result if output is self._returned else None
            if packed is None:
                packed = encode(redacted_data(run, result_data(output)))
            self._capture.size += len(packed)
            data["output"] = msgspec.Raw(packed)
            if packed == self._result:
                self._result = None
        self._returned = None
        if self._result is not None:
            self._capture.size += len(self._result)
            data["result"] = msgspec.Raw(self._result)


def result_data(result: Any) -> Any:
    """Return a result from which the SDK derives the same output."""
    if result is None or isinstance(result, (str, bool, int)):
        return result
    if isinstance(result, _CONTENT):
        return result.model_dump(mode="json", exclude_none=True)
    if isinstance(result, list) and result and all(isinstance(one, (*_CONTENT, dict)) for one in result):
        return [result_data(one) for one in result]
    if dataclasses.is_dataclass(result) and type(result).__name__ in _RESULTS:
        return result
    try:
        is_same = decode(encode(result)) == result
    except (ValueError, TypeError, RecursionError):
        is_same = False
    return result if is_same else str(result)


def _is_content(result: Any) -> bool:
    """Return whether a result is content objects; dicts of that shape count too."""
    if type(result) is str:
        return False  # as of most tools
    parts = result if isinstance(result, list) else [result]
    return bool(parts) and all(isinstance(part, _CONTENT) for part in parts)


def _decision_data(layers: RuleLayers, decision: Decision) -> dict[str, Any]:
    data: dict[str, Any] = {"is_allowed": decision.allowed}
    if decision.key is not None:
        data["rule"] = decision.rule
        names = layers.deciding(decision)
        if names:
            data["layers"] = list(names)
    if decision.error is not None:
        data["code"] = decision.error.code
    return data


def _received(facts: ToolFacts, arguments: str) -> list[dict[str, Any]]:
    if facts.received is None:
        return []
    try:
        written = decode(arguments or "{}")
        if type(written) is not dict or is_unchanged(facts.received, written):
            return []
        read = facts.received(written)
        if not read:
            # An invalid call: the rules check what the model wrote, without the schema's defaults.
            return [dict(written)] if b'"default"' in encode(facts.schema) else []
        expected = canonical(written)  # 1 is not True
        return [] if all(canonical(one) == expected for one in read) else read
    except Exception:  # noqa: BLE001 - not JSON, or a validator of the user raised: the call fails too
        return []


def tool_call_data(capture: Collector, call: ToolCall) -> dict[str, Any]:
    """Return the data at the start of a tool call."""
    # The model's own arguments: a middleware may insert values that must not be recorded.
    written = getattr(call.tool_context, "tool_arguments", None)
    arguments = written if isinstance(written, str) else call.arguments
    if call.tool is None and not arguments:
        arguments = capture.requests.arguments_of(call.call_id)  # the SDK does not pass them on
    recorded = redacted_data(capture.run, arguments)
    data: dict[str, Any] = {
        "at": capture.elapsed(),
        "call_id": call.call_id,
        "name": call.name,
        "arguments": recorded,
    }
    capture.size += len(arguments)
    if recorded != arguments:
        data["has_other_arguments"] = True
    if call.agent != capture.run.agent.name:
        data["agent"] = call.agent
    parent = parent_call(capture.run)
    if parent is not None:
        data["parent_call"] = parent
    if call.tool is not None:
        data["tool"] = _shared_tool(capture.run, call.tool)
    return data


def _shared_tool(run: Run, tool: Any) -> Shared:
    if is_redacted(run):
        return Shared("tool", encode(redacted_data(run, tool_data(tool))))
    return shared_tools((tool,), tool_data).first
