"""Collects the complete record of one run.

Data that may change later is encoded immediately. Errors never reach the run; the record lists the missing
parts. Every run waits for this code, so it defers work to the recorder's thread, avoids generators and
context managers, and encodes nothing twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from time import perf_counter
from typing import Any

import msgspec
from agents import Model, RunState

from kantan_agents.agent.bridge.captured.beginning import Beginning, packed
from kantan_agents.agent.bridge.captured.collector import error_data, parent_call
from kantan_agents.agent.bridge.captured.definitions import encode
from kantan_agents.agent.bridge.captured.model_call import ModelCallCapture
from kantan_agents.agent.bridge.captured.prompts_and_rules import described_agent, shared_rules
from kantan_agents.agent.bridge.captured.requests import Requests
from kantan_agents.agent.bridge.captured.tool_call import ToolCallCapture, tool_call_data
from kantan_agents.core.events.emitter import outcome_of
from kantan_agents.core.interception import ToolCall, is_redacted, redacted_data, redacted_input
from kantan_agents.core.pipeline import Run
from kantan_agents.core.templating import values_read
from kantan_agents.models.structured import json_data
from kantan_agents.models.structured.requests.request import Request
from kantan_agents.tool_rules import RuleLayers
from kantan_agents.traces.capture.canonical import decode
from kantan_agents.traces.capture.captured import CapturedRun, is_record_wanted
from kantan_agents.traces.capture.reading import VERSION
from kantan_agents.traces.capture.shared import Shared, shared_item
from kantan_agents.traces.spans import user_input

# Memory of a record's objects, without its own strings.
_RUN_BYTES = 2_000
_CALL_BYTES = 1_500


def capture_run(run: Run, outer: Run | None) -> RunCapture | None:
    """Return the capture of a run, if its record is wanted."""
    if outer is not None and outer._capture is not None and outer.trace_id == run.trace_id:
        outer._capture.inner_runs.append(run.id)
    if run.trace_id is None or not is_record_wanted(run.trace_id) or not run.records_sensitive_data:
        return None
    return RunCapture(run, None if outer is None else outer._capture)


class RunCapture:
    """The record of an active run.

    Attributes:
        rules: The rules in force at the start, once known.
        missing: Descriptions of parts that could not be captured.
        inner_runs: Ids of the runs started inside this one.
        size: About how many bytes only this record needs, without its requests.
    """

    def __init__(self, run: Run, outer: RunCapture | None = None) -> None:
        self.run = run
        self.beginning: Beginning = Beginning(run, None if outer is None else outer.beginning)
        self.requests = Requests(run)
        self.rules: RuleLayers | None = None
        self.missing: list[str] = []
        self.inner_runs: list[str] = []
        self.size = 0
        self._started_at = datetime.now(timezone.utc)
        self._begun = perf_counter()
        self._agents: dict[str, dict[str, Any]] = {}
        self._values: dict[str, dict[str, msgspec.Raw]] = {}
        # The latest agent whose prompt reads no values, with its instructions.
        self._plain: tuple[Any, Any] | None = None
        self._model_calls: list[ModelCallCapture] = []
        self._tool_calls: list[ToolCallCapture] = []
        self._listings: list[Any] = []
        self._listed: dict[str, bytes | None] = {}
        self._state: dict[str, Any] | None = None
        self._options = {name: value for name, value in run.options.items() if _is_plain(value)}
        try:
            if isinstance(run.input, RunState):
                self._state = _state_of(run.input)
            else:
                self.beginning.with_input(run.input)
                template = described_agent(run.agent, run.agent.instructions).template
                if template is not None:
                    self.beginning.read_by(template)
        except Exception as error:  # noqa: BLE001 - recording must not fail a run
            what = "state that the run was resumed from" if isinstance(run.input, RunState) else "given input"
            self.failed(f"the {what}", error)

    def elapsed(self) -> float:
        """Return the seconds since the run started."""
        return perf_counter() - self._begun

    def failed(self, what: str, error: Exception) -> None:
        """Note that something could not be captured."""
        reason = f"{what} could not be captured: {type(error).__name__}"
        if reason not in self.missing:
            self.missing.append(reason)

    def began_with(self, layers: RuleLayers) -> None:
        """Capture the rules at the start of the run."""
        self.rules = layers

    def rendered(self, agent: Any, context: Any) -> None:
        """Capture a rendered prompt, and the values it read."""
        try:
            instructions = agent.instructions
            if self._plain is not None and self._plain[0] is agent and self._plain[1] is instructions:
                return
            self._add_agent(agent, instructions, context)
        except Exception as error:  # noqa: BLE001 - recording must not fail a run
            self.failed("a prompt", error)

    def _add_agent(self, agent: Any, instructions: Any, context: Any) -> None:
        name = agent.name
        described = described_agent(agent, instructions)
        known = self._agents.get(name)
        if known is None:
            if is_redacted(self.run):
                prompt = self._encoded(decode(described.data["prompt"].packed))
                self._agents[name] = {**described.data, "prompt": Shared("prompt", bytes(prompt))}
            else:
                self._agents[name] = described.data
        if described.template is None:
            self._plain = agent, instructions
            return
        if not isinstance(context, dict):
            return
        if known is None:
            self.beginning.read_by(described.template)
        read = values_read(described.template, context)
        values = {path: self._encoded(value) for path, value in read.items()}
        self._values[name] = values
        if known is None and values:
            self._agents[name] = {**self._agents[name], "context": values}

    def _encoded(self, value: Any) -> msgspec.Raw:
        if is_redacted(self.run):
            value = redacted_data(self.run, decode(encode(value)))
        return self._raw(value)

    def model_call(
        self,
        agent: str,
        model: Model,
        request: Request,
        *,
        fetch: Any = None,
        is_streamed: bool = False,
        is_internal: bool = False,
        from_cache: bool = False,
    ) -> ModelCallCapture:
        """Capture a request before it is sent; the caller reports its end."""
        data: dict[str, Any] = {"at": self.elapsed(), "agent": agent}
        try:
            self.requests.describe(data, model, request, fetch)
            if is_streamed:
                data["is_streamed"] = True
            if is_internal:
                data["is_internal"] = True
            if from_cache:
                data["from_cache"] = True
            parent = parent_call(self.run)
            if parent is not None:
                data["parent_call"] = parent
            values = self._values.get(agent)
            if values is not None and values != self._agents[agent].get("context", {}):
                data["context"] = values
        except Exception as error:  # noqa: BLE001 - recording must not fail a run
            self.failed("a model call", error)
        captured = ModelCallCapture(self, data, len(self._model_calls))
        self._model_calls.append(captured)
        return captured

    def listed(self, server: str, tools: Sequence[Any] | None, reason: str | None = None) -> None:
        """Capture an MCP server's tools, or the reason why it is unusable."""
        try:
            packed = None
            why = [] if reason is None else [redacted_data(self.run, reason)]
            if tools is not None:
                data = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
                packed = encode(redacted_data(self.run, data))
            if self._listed.get(server, b"") != packed:
                self._listed[server] = packed
                self.size += len(packed or b"")
                listing = None if packed is None else Shared("listing", packed)
                self._listings.append([server, len(self._model_calls), listing, *why])
        except Exception as error:  # noqa: BLE001 - recording must not fail a run
            self.failed("the tools of an MCP server", error)

    def tool_call(self, call: ToolCall) -> ToolCallCapture | None:
        """Capture the start of a tool call; the caller reports its end."""
        try:
            captured = ToolCallCapture(self, call, tool_call_data(self, call))
        except Exception as error:  # noqa: BLE001 - recording must not fail a run
            self.failed("a tool call", error)
            return None
        self._tool_calls.append(captured)
        return captured

    def finished(self, error: BaseException | None) -> CapturedRun:
        """Return the record, and release the captures of calls.

        They refer to the run. Without these cycles, all are freed at the end, not by the garbage collector,
        which every run would wait for.
        """
        run = self.run
        data: dict[str, Any] = {
            "version": VERSION,
            "agent": run.agent.name,
            "started_at": self._started_at,
            "seconds": self.elapsed(),
            "outcome": "finished" if error is None and not run.is_stopped else _outcome(run, error),
            "model_calls": [call.data for call in self._model_calls],
            "tool_calls": [call.data for call in self._tool_calls],
        }
        if self._agents:
            data["agents"] = [*self._agents.values()]
        try:
            if self.rules is not None:
                data["rules"] = shared_rules(self.rules)
            self._add_input(data)
            self._add_end(data, error)
        except Exception as raised:  # noqa: BLE001 - recording must not fail a run
            self.failed("the input, the output or the rules", raised)
        self._add_circumstances(data)
        if self.missing:
            data["missing"] = self.missing
        self._model_calls, self._tool_calls = [], []
        calls = len(data["model_calls"]) + len(data["tool_calls"])
        size = self.size + self.requests.size + _RUN_BYTES + _CALL_BYTES * calls
        return CapturedRun(run.id, run.trace_id or "", data, size)

    def _add_circumstances(self, data: dict[str, Any]) -> None:
        run = self.run
        if run.is_streamed:
            data["is_streamed"] = True
        if run.is_nested:
            data["is_nested"] = True
        if run.parent_run is not None:
            data["parent"] = [run.parent_run, run.parent_call]
        if self.inner_runs:
            data["inner_runs"] = self.inner_runs
        if self._listings:
            data["listings"] = self._listings
        if run.options.get("session") is not None:
            data["has_session"] = True
        if run.arm is not None:
            data["arm"] = run.arm

    def _add_input(self, data: dict[str, Any]) -> None:
        run = self.run
        if self._options:
            data["options"] = self._options
        if self._state is not None:
            data["state"] = self._encoded(self._state)
            return
        sent = packed(redacted_input(run, user_input(run)))
        data["input"] = self._items(sent)
        given = self.beginning.given()
        if given is not None:
            data["given"] = True if given == sent else self._items(given)
        earlier = self.beginning.earlier(data["model_calls"], sent)
        if earlier is not None:
            data["earlier"] = self._items(earlier)
        values = {path: self._encoded(decode(value)) for path, value in self.beginning.values.items()}
        read: dict[str, Any] = {}
        for agent in self._agents.values():
            read |= agent.get("context", {})
        if values != read:
            data["given_context"] = values

    def _items(self, packed: str | list[bytes]) -> Any:
        if isinstance(packed, str):
            self.size += len(packed)
            return packed
        self.size += sum(map(len, packed))
        return [shared_item(item) for item in packed]

    def _add_end(self, data: dict[str, Any], error: BaseException | None) -> None:
        run = self.run
        if error is not None:
            data["error"] = error_data(run, error)
            return
        output = getattr(run.result, "final_output", run.result)
        if output is None:
            return
        if type(output) is not str:
            output = json_data(output)
        output = redacted_data(run, output)
        if type(output) is str:
            self.size += len(output)
            data["output"] = output
        else:
            data["output"] = self._raw(output)

    def _raw(self, value: Any) -> msgspec.Raw:
        packed = encode(value)
        self.size += len(packed)
        return msgspec.Raw(packed)


def _outcome(run: Run, error: BaseException | None) -> str:
    if error is not None:
        return outcome_of(error)
    return "stopped" if run.is_stopped else "finished"


def _state_of(given: RunState[Any, Any]) -> dict[str, Any]:
    # The context belongs to the caller: only the values that the template read are recorded.
    state: dict[str, Any] = given.to_json(context_serializer=lambda _: {})
    return state


def _is_plain(value: Any) -> bool:
    return isinstance(value, (str, int, float, bool))
