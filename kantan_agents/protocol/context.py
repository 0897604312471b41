"""What the SDK asks a model, as a provider sees it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from agents import FunctionTool, Handoff, ModelSettings

from kantan_agents.errors import HostedToolError, InvalidOptionError
from kantan_agents.interception import asking_agent
from kantan_agents.pipeline import current_run
from kantan_agents.protocol.provider import Message, ProviderContext, ToolSpec
from kantan_agents.protocol.translate.openai_responses import read_messages
from kantan_agents.protocol.translate.responses_items import NO_ID

_KEPT = 16_384
_LARGE = 200_000
_ITEM = 100
_UNKEPT = ("previous_response_id", "conversation_id", "prompt")
_OF_SDK = frozenset({"retry", "preserve_raw_usage", "context_management", "include_usage"})


class Tools:
    """The tools of an agent as the protocol's; one that stays the same is made once."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        # A plain dict: agents run in several threads, and are copied.
        self._known: dict[int, tuple[Any, ToolSpec]] = {}

    def specs(self, tools: Iterable[Any], handoffs: Iterable[Handoff[Any, Any]]) -> dict[str, ToolSpec]:
        """Return tools and hand-offs by name, in their order.

        Raises:
            HostedToolError: E59, some are run by OpenAI or by the SDK itself.
        """
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
        known, spec = self._known.get(id(schema), (None, None))
        if spec is not None and known is schema and spec.name == name and spec.description == description:
            return spec
        # A hand-off without an input has no schema.
        parameters = schema or {"type": "object", "properties": {}}
        made = ToolSpec(name, description or "", parameters)
        if len(self._known) >= _KEPT:
            self._known.clear()
        self._known[id(schema)] = (schema, made)
        return made


def context_of(
    tools: Mapping[str, ToolSpec],
    instructions: str | None,
    input: str | Iterable[Any],
    settings: ModelSettings,
    output_schema: Any,
) -> ProviderContext:
    """Return what a provider is given for one request of the SDK.

    Raises:
        UntranslatableError: E52, the conversation has something the protocol cannot carry.
    """
    run = current_run.get()
    agent = asking_agent.get() or (run.agent.name if run is not None else "")
    return ProviderContext(
        tools=tools,
        messages=tuple(read_messages(input, keeps=False)),
        instructions=instructions,
        agent=agent,
        run_id=run.id if run is not None else None,
        output_schema=_schema(output_schema),
        settings=settings_of(settings),
    )


def is_large(input: str | Iterable[Any]) -> bool:
    """Return whether a conversation is so large that reading it would hold the event loop."""
    if isinstance(input, str):
        return len(input) > _LARGE
    size = 0
    for item in input:
        size += _ITEM
        for value in item.values() if isinstance(item, Mapping) else ():
            if isinstance(value, str):
                size += len(value)
            elif isinstance(value, list):
                parts = [part for part in value if isinstance(part, Mapping)]
                size += sum(len(text) for part in parts for text in part.values() if isinstance(text, str))
        if size > _LARGE:
            return True
    return False


def prompt_of(messages: Iterable[Message]) -> str:
    """Return the text of the newest message of the user."""
    said = [message for message in messages if message.role == "user"]
    return said[-1].text if said else ""


def settings_of(settings: ModelSettings) -> dict[str, Any]:
    """Return what has been set, by the SDK's names."""
    set_fields = {field.name: getattr(settings, field.name) for field in dataclasses.fields(ModelSettings)}
    return {name: value for name, value in set_fields.items() if value is not None and name not in _OF_SDK}


def refuse_kept_conversation(provider: str, asked: Mapping[str, Any]) -> None:
    """Make sure that nothing is asked which only OpenAI keeps.

    Raises:
        InvalidOptionError: E75, a conversation or a prompt that is stored at OpenAI.
    """
    for name in _UNKEPT:
        if asked.get(name) not in (None, NO_ID):
            reason = f"is about what OpenAI stores, of which provider {provider} knows nothing"
            raise InvalidOptionError(option=name, reason=reason)


def _schema(output_schema: Any) -> Mapping[str, Any] | None:
    if output_schema is None or output_schema.is_plain_text():
        return None
    schema: Mapping[str, Any] = output_schema.json_schema()
    return schema
