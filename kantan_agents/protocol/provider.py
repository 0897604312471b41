"""What a provider is, and what it is given (spec protocol 4)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import attrs

from kantan_agents.protocol.json_data import is_text
from kantan_agents.protocol.types import ContentSegment, ProviderResponse, as_tuple, segment_problems
from kantan_agents.protocol.values import Value, data_problems, made_of, spelled

Role = Literal["system", "user", "assistant", "tool"]
"""Who says a message; ``"tool"`` is what a tool has returned."""

_ROLES: tuple[Role, ...] = get_args(Role)


@attrs.frozen
class ToolSpec(Value):
    """A tool as a provider sees it: the protocol's ``ITool``.

    Args:
        name: Its name.
        description: What it is for.
        parameters: JSON Schema of its parameters, an object.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = attrs.field(factory=lambda: {"type": "object", "properties": {}})

    def _mistakes(self) -> Iterable[str]:
        if not is_text(self.name) or not self.name:
            yield f"name: must be a str that is not empty, not {self.name!r}"
        if not is_text(self.description):
            yield f"description: must be a str, not {self.description!r}"
        if not isinstance(self.parameters, Mapping):
            yield f"parameters: must be a JSON Schema object, not {type(self.parameters).__name__}"
        yield from data_problems("parameters", self.parameters)


@attrs.frozen
class Message(Value):
    """One message of the conversation so far.

    Args:
        role: Who says it.
        segments: What is said. An assistant's may hold calls; a tool's is what it returned.
        tool_call_id: With ``"tool"``: id of the call that is answered.
        tool_name: With ``"tool"``: name of the tool, where it is known.
    """

    role: Role
    segments: tuple[ContentSegment, ...] = attrs.field(
        converter=as_tuple,
        metadata=made_of(ContentSegment, many=True),
    )
    tool_call_id: str | None = attrs.field(default=None, metadata=spelled("toolCallId"))
    tool_name: str | None = attrs.field(default=None, metadata=spelled("toolName"))

    @property
    def text(self) -> str:
        """The texts of all text segments, one after the other."""
        return "".join(segment.text or "" for segment in self.segments)

    def _mistakes(self) -> Iterable[str]:
        if self.role not in _ROLES:
            yield f"role: must be one of {', '.join(_ROLES)}, not {self.role!r}"
        if (self.role == "tool") != (self.tool_call_id is not None):
            yield "toolCallId: must be there in a message of the role tool, and in no other"
        if self.tool_name is not None and self.role != "tool":
            yield "toolName: belongs to a message of the role tool"
        for name, value in (("toolCallId", self.tool_call_id), ("toolName", self.tool_name)):
            if value is not None and not is_text(value):
                yield f"{name}: must be a str, not {value!r}"
        yield from segment_problems("segments", self.segments)
        if self.role != "assistant" and isinstance(self.segments, tuple):
            for place, segment in enumerate(self.segments):
                if isinstance(segment, ContentSegment) and segment.tool_call is not None:
                    yield f"segments[{place}]: only an assistant calls tools"


@attrs.frozen
class ProviderContext:
    """What the agent lets a provider know: the protocol's ``IAgentContext``.

    Attributes:
        tools: The tools the model may call now, by name, in an order that stays the same from turn to turn;
            what the tool rules hide is not among them.
        messages: The conversation so far, the newest last; tool calls and their results included, the
            instructions not.
        instructions: The system prompt, rendered.
        agent: Name of the agent.
        run_id: Id of the run; None outside of one of ours.
        output_schema: JSON Schema of the output, if it is asked for in the provider's own way.
        settings: What ``model_settings`` says, by the SDK's names: ``temperature``, ``max_tokens``,
            ``tool_choice``, ...; only what was set.
    """

    tools: Mapping[str, ToolSpec] = attrs.field(factory=dict)
    messages: tuple[Message, ...] = ()
    instructions: str | None = None
    agent: str = ""
    run_id: str | None = None
    output_schema: Mapping[str, Any] | None = None
    settings: Mapping[str, Any] = attrs.field(factory=dict)


@runtime_checkable
class Provider(Protocol):
    """A source of answers that speaks no dialect of OpenAI's: ``Agent(model=provider)`` runs on it.

    Attributes:
        name: Its name, in traces and errors.
    """

    name: str

    async def generate(self, prompt: str, context: ProviderContext) -> ProviderResponse:
        """Answer.

        Args:
            prompt: What the user has said last.
            context: Everything else: the tools, the conversation so far.
        """
        ...


@runtime_checkable
class StreamingProvider(Provider, Protocol):
    """A provider that answers piece by piece, where a run is streamed."""

    def stream(
        self, prompt: str, context: ProviderContext
    ) -> AsyncIterator[ContentSegment | ProviderResponse]:
        """Yield the segments of an answer in order; texts that follow one another are one text.

        A ``ProviderResponse`` may come last: its metadata is that of the answer, its segments the last ones.
        """
        ...
