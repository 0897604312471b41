"""The provider interface (spec protocol 4)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args, runtime_checkable

import attrs

from kantan_agents.models.protocol.json_data import is_text, plain
from kantan_agents.models.protocol.pieces import Streamed
from kantan_agents.models.protocol.types import ContentSegment, ProviderResponse, as_tuple, segment_problems
from kantan_agents.models.protocol.values import Value, data_problems, json_name, nested_value

Role = Literal["system", "user", "assistant", "tool"]
"""The author of a message; ``"tool"`` marks the result of a tool call."""

_ROLES: tuple[Role, ...] = get_args(Role)


@attrs.frozen
class ToolSpec(Value):
    """A tool as a provider sees it: the protocol's ``ITool``.

    Args:
        name: Name of the tool.
        description: What the tool does.
        parameters: JSON Schema of its parameters, of type ``object``.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = attrs.field(factory=lambda: {"type": "object", "properties": {}})
    _original: ToolSpec | None = attrs.field(default=None, init=False, eq=False, repr=False)

    def lend(self) -> ToolSpec:
        """Return an equal spec that may be changed without changing this one.

        It copies its ``parameters`` at the first access: a request may have thousands of tools, and not every
        provider reads all schemas.
        """
        lent = object.__new__(ToolSpec)
        keep = object.__setattr__
        keep(lent, "name", self.name)
        keep(lent, "description", self.description)
        keep(lent, "extra", plain(self.extra) if self.extra else {})
        keep(lent, "_original", self)
        return lent

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # Only for missing attributes: the parameters of a lent spec.
            if name != "parameters":
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            copied = plain(self._original.parameters)
            object.__setattr__(self, "parameters", copied)
            return copied

    def _problems(self) -> Iterable[str]:
        if not is_text(self.name) or not self.name:
            yield f"name: must be a non-empty str, not {self.name!r}"
        if not is_text(self.description):
            yield f"description: must be a str, not {self.description!r}"
        if not isinstance(self.parameters, Mapping):
            yield f"parameters: must be a JSON Schema object, not {type(self.parameters).__name__}"
        yield from data_problems("parameters", self.parameters)


@attrs.frozen
class Message(Value):
    """One message of the conversation.

    Args:
        role: The author of the message.
        segments: Its content. Only an assistant message may hold tool calls; a tool message holds a result.
        tool_call_id: Required with ``"tool"``: id of the call that the result belongs to.
        tool_name: Only with ``"tool"``: name of the tool, if known.
    """

    role: Role
    segments: tuple[ContentSegment, ...] = attrs.field(
        converter=as_tuple,
        metadata=nested_value(ContentSegment, many=True),
    )
    tool_call_id: str | None = attrs.field(default=None, metadata=json_name("toolCallId"))
    tool_name: str | None = attrs.field(default=None, metadata=json_name("toolName"))

    @property
    def text(self) -> str:
        """The text of all text segments, concatenated."""
        return "".join(segment.text or "" for segment in self.segments)

    def _problems(self) -> Iterable[str]:
        if self.role not in _ROLES:
            yield f"role: must be one of {', '.join(_ROLES)}, not {self.role!r}"
        if (self.role == "tool") != (self.tool_call_id is not None):
            yield "toolCallId: is required in a message of the role tool, and not allowed in any other"
        if self.tool_name is not None and self.role != "tool":
            yield "toolName: belongs to a message of the role tool"
        for name, value in (("toolCallId", self.tool_call_id), ("toolName", self.tool_name)):
            if value is not None and not is_text(value):
                yield f"{name}: must be a str, not {value!r}"
        yield from segment_problems("segments", self.segments)
        if self.role != "assistant" and isinstance(self.segments, tuple):
            for index, segment in enumerate(self.segments):
                if isinstance(segment, ContentSegment) and segment.tool_call is not None:
                    yield f"segments[{index}]: only an assistant message may hold a tool call"


@attrs.frozen
class ProviderContext:
    """The input of one model call, apart from the prompt: the protocol's ``IAgentContext``.

    A provider may change everything in it, such as a tool's schema: it is a copy for this call.

    Attributes:
        tools: The tools that the model may call in this turn, and its handoffs, by name, in an order that is
            stable from turn to turn. Tools hidden by the tool rules are not among them.
        messages: The conversation so far, oldest first, with tool calls and their results, without the
            instructions.
        instructions: The rendered system prompt.
        agent: Name of the agent.
        run_id: Id of the run; None in a run that the SDK's ``Runner`` started.
        output_schema: JSON Schema of the output, for providers with ``supports_output_schema = True``.
        settings: The ``model_settings`` that are not None, by the SDK's names: ``temperature``,
            ``max_tokens``, ``tool_choice``, ...
        wants_pieces: Whether ``stream`` may also yield ``ReasoningPiece`` and ``ArgumentsPiece``.
    """

    tools: Mapping[str, ToolSpec] = attrs.field(factory=dict)
    messages: tuple[Message, ...] = ()
    instructions: str | None = None
    agent: str = ""
    run_id: str | None = None
    output_schema: Mapping[str, Any] | None = None
    settings: Mapping[str, Any] = attrs.field(factory=dict)
    wants_pieces: bool = False


@runtime_checkable
class Provider(Protocol):
    """A custom model provider: implement it to run an agent on any API, with ``Agent(model=provider)``.

    Attributes:
        name: Name of the provider, for traces and errors.
    """

    name: str

    async def generate(self, prompt: str, context: ProviderContext) -> ProviderResponse:
        """Call the model once and return its response.

        Args:
            prompt: Text of the user's last message.
            context: The conversation, the tools, the instructions and the settings.
        """
        ...


@runtime_checkable
class StreamingProvider(Provider, Protocol):
    """A provider that can stream: streamed runs call ``stream``, all others ``generate``."""

    def stream(self, prompt: str, context: ProviderContext) -> AsyncIterator[Streamed]:
        """Yield the segments of a response in order; successive text segments are joined.

        A ``ProviderResponse`` may come last: its segments are appended, and its metadata becomes the
        response's. If ``context.wants_pieces`` is True, the provider may yield the model's reasoning and the
        arguments of tool calls while they are written, as ``ReasoningPiece`` and ``ArgumentsPiece``.
        """
        ...
