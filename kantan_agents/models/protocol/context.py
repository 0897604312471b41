"""Builds a ``ProviderContext`` from the SDK's arguments."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from agents import FunctionTool, Handoff, ModelSettings
from pydantic import BaseModel

from kantan_agents.core.interception import active_agent
from kantan_agents.core.pipeline import current_run
from kantan_agents.errors import HostedToolError, InvalidOptionError
from kantan_agents.models.protocol.json_data import plain
from kantan_agents.models.protocol.provider import Message, ProviderContext, ToolSpec
from kantan_agents.models.protocol.translate.openai_responses.items import NO_ID
from kantan_agents.models.protocol.translate.openai_responses.messages import read_messages

_CACHE_SIZE = 16_384
_LARGE_SIZE = 200_000
_ITEM_SIZE = 100
_SERVER_SIDE = ("previous_response_id", "conversation_id", "prompt")
_SDK_ONLY = frozenset({"retry", "preserve_raw_usage", "context_management", "include_usage"})


class ToolSpecs:
    """Converts tools to ``ToolSpec``s, with a cache."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        # Agents run in several threads and are copied.
        self._specs: dict[int, tuple[Any, ToolSpec]] = {}

    def specs(self, tools: Iterable[Any], handoffs: Iterable[Handoff[Any, Any]]) -> dict[str, ToolSpec]:
        """Return specs by name, tools first; E59 for hosted tools."""
        specs: dict[str, ToolSpec] = {}
        hosted: list[str] = []
        for tool in tools:
            if isinstance(tool, FunctionTool):
                specs[tool.name] = self._spec(tool.name, tool.description, tool.params_json_schema)
            else:
                hosted.append(getattr(tool, "name", type(tool).__name__))
        if hosted:
            raise HostedToolError(provider=self._provider, tools=hosted)
        for handoff in handoffs:
            name = handoff.tool_name
            specs[name] = self._spec(name, handoff.tool_description, handoff.input_json_schema)
        return specs

    def _spec(self, name: str, description: str | None, schema: Mapping[str, Any]) -> ToolSpec:
        known, spec = self._specs.get(id(schema), (None, None))
        if spec is not None and known is schema and spec.name == name and spec.description == description:
            return spec
        # A handoff without an input has no schema.
        parameters = schema or {"type": "object", "properties": {}}
        spec = ToolSpec(name, description or "", parameters)
        if len(self._specs) >= _CACHE_SIZE:
            self._specs.clear()
        self._specs[id(schema)] = (schema, spec)
        return spec


def provider_context(
    tools: Mapping[str, ToolSpec],
    instructions: str | None,
    input: str | Iterable[Any],
    settings: ModelSettings,
    output_schema: Any,
    *,
    lend: bool,
    is_streamed: bool,
) -> ProviderContext:
    """Return a provider's context for one request of the SDK; E52 for untranslatable items.

    ``lend``: the provider gets copies of everything that later requests use too.
    """
    run = current_run.get()
    agent = active_agent.get() or (run.agent.name if run is not None else "")
    schema, used = _schema(output_schema), changed_settings(settings)
    return ProviderContext(
        tools={name: tool.lend() for name, tool in tools.items()} if lend else tools,
        messages=tuple(read_messages(input, keep_unknown=False)),
        instructions=instructions,
        agent=agent,
        run_id=run.id if run is not None else None,
        output_schema=plain(schema) if lend else schema,
        settings=_lent(used) if lend else used,
        wants_pieces=is_streamed,
    )


def is_large(input: str | Iterable[Any]) -> bool:
    """Return whether a conversion would block the event loop."""
    if isinstance(input, str):
        return len(input) > _LARGE_SIZE
    size = 0
    for item in input:
        size += _ITEM_SIZE
        for value in item.values() if isinstance(item, Mapping) else ():
            if isinstance(value, str):
                size += len(value)
            elif isinstance(value, list):
                parts = [part for part in value if isinstance(part, Mapping)]
                size += sum(len(text) for part in parts for text in part.values() if isinstance(text, str))
        if size > _LARGE_SIZE:
            return True
    return False


def last_user_text(messages: Iterable[Message]) -> str:
    """Return the user's last text."""
    from_user = [message for message in messages if message.role == "user"]
    return from_user[-1].text if from_user else ""


def changed_settings(settings: ModelSettings) -> dict[str, Any]:
    """Return the settings that are not None."""
    set_fields = {field.name: getattr(settings, field.name) for field in dataclasses.fields(ModelSettings)}
    return {name: value for name, value in set_fields.items() if value is not None and name not in _SDK_ONLY}


def _lent(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _lent(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_lent(inner) for inner in value]
    if isinstance(value, BaseModel):
        return value.model_copy(deep=True)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(value)
    return value


def reject_server_side_state(provider: str, options: Mapping[str, Any]) -> None:
    """Raise E75 for data stored at OpenAI."""
    for name in _SERVER_SIDE:
        if options.get(name) not in (None, NO_ID):
            reason = f"refers to state stored at OpenAI, which provider {provider} cannot read"
            raise InvalidOptionError(option=name, reason=reason)


def _schema(output_schema: Any) -> Mapping[str, Any] | None:
    if output_schema is None or output_schema.is_plain_text():
        return None
    schema: Mapping[str, Any] = output_schema.json_schema()
    return schema
