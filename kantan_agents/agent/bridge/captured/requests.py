"""Describes a run's requests, each by its difference from the previous one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from agents import Model, ModelSettings

from kantan_agents.agent.bridge.captured.definitions import (
    encode,
    handoff_data,
    output_data,
    settings_data,
    tool_data,
)
from kantan_agents.agent.bridge.captured.models import shared_model
from kantan_agents.agent.bridge.captured.request_data import sent_options
from kantan_agents.agent.bridge.captured.tool_lists import shared_tools
from kantan_agents.core.interception import is_redacted, redacted_data
from kantan_agents.core.pipeline import Run
from kantan_agents.models.protocol.translate.openai_responses.provider_data import without_media
from kantan_agents.models.structured.requests.request import Request
from kantan_agents.traces.capture.canonical import decode, in_common
from kantan_agents.traces.capture.shared import Shared, shared_item

_UNSET = vars(ModelSettings())


class Requests:
    """The shared parts of a run's requests; ``size`` is in bytes."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._items: list[bytes] = []
        self._latest: dict[str, Shared] = {}
        self.answered: list[bytes] = []
        self.answered_by = 0
        self.cancelled: dict[str, dict[str, Any]] = {}
        self.size = 0

    def describe(self, data: dict[str, Any], model: Model, request: Request, fetch: Any) -> None:
        """Add a request to the data of its call."""
        run = self._run
        redacted = is_redacted(run)
        data["model"] = shared_model(model)
        instructions = request.instructions
        if instructions is not None:
            if redacted:
                instructions = redacted_data(run, instructions)
            data["instructions"] = self._shared("instructions", instructions)
        if vars(request.settings) != _UNSET:
            settings = settings_data(request.settings)
            if settings:
                data["settings"] = self._redacted("settings", settings)
        tools = request.tools
        if tools:
            data["tools"] = (
                self._redacted_tools(tools, tool_data) if redacted else shared_tools(tools, tool_data).all
            )
        options = request.options
        handoffs = options.get("handoffs")
        if handoffs:
            data["handoffs"] = (
                self._redacted_tools(handoffs, handoff_data)
                if redacted
                else shared_tools(handoffs, handoff_data).all
            )
        schema = options.get("output_schema")
        if schema is not None or fetch is not None:
            self._describe_output(data, schema, fetch)
        sent = sent_options(model, options)
        if sent:
            data["options"] = msgspec.Raw(encode(sent))
        self._add_input(data, redacted_data(run, request.input) if redacted else request.input)

    def arguments_of(self, call_id: str) -> str:
        """Return a tool call's arguments in the latest answer, or an empty string."""
        for packed in self.answered:
            item = decode(packed)
            if item.get("call_id") == call_id and isinstance(item.get("arguments"), str):
                return str(item["arguments"])
        return ""

    def _shared(self, kind: str, value: str | bytes) -> Shared:
        known = self._latest.get(kind)
        if known is None or known.value != value:
            known = self._latest[kind] = Shared(kind, value)
            self.size += len(value)
        return known

    def _redacted(self, kind: str, value: Any) -> Shared:
        return self._shared(kind, encode(redacted_data(self._run, value)))

    def _redacted_tools(self, tools: Sequence[Any], described: Callable[[Any], dict[str, Any]]) -> Shared:
        return Shared("tools", encode(redacted_data(self._run, [described(tool) for tool in tools])))

    def _describe_output(self, data: dict[str, Any], schema: Any, fetch: Any) -> None:
        mode = "native"
        if schema is None:
            schema, mode = fetch.schema, getattr(fetch, "mode", None) or mode
        if not schema.is_plain_text():
            data["output"] = self._redacted("output", output_data(schema, mode))

    def _add_input(self, data: dict[str, Any], given: Any) -> None:
        if not isinstance(given, list):
            data["input"] = given
            self.size += len(given)
            return
        # Every run waits for this. Only an assistant's item can have media.
        items = [
            encode(item if type(item) is dict and item.get("role") != "assistant" else without_media(item))
            for item in given
        ]
        if not self._items:
            new = items
        else:
            kept = in_common(self._items, items)
            answered = in_common(self.answered, items[kept:])
            if self.cancelled:
                self._add_results(given[kept + answered :])
            if kept:
                data["kept"] = kept
            if answered:
                data["answered"], data["answer_of"] = answered, self.answered_by
            new = items[kept + answered :]
        self._items = items
        self.size += sum(map(len, new))
        data["items"] = [shared_item(item) for item in new]

    def _add_results(self, items: list[Any]) -> None:
        for item in items:
            if isinstance(item, dict) and item.get("call_id") in self.cancelled and "output" in item:
                call = self.cancelled.pop(item["call_id"])
                call["output"] = msgspec.Raw(encode(item["output"]))
