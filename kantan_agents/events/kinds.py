"""The event classes: frozen attrs classes that convert to JSON.

Every start has exactly one end, also after an error or a cancellation: a run ends with ``RunFinished``,
``RunFailed`` or ``RunCancelled``, a stage with ``StageLeft``, a model call with ``ModelCallFinished``, and a
tool call with ``ToolCallFinished`` or ``ToolCallRefused``.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import attrs

if TYPE_CHECKING:
    from openai.types.responses import ResponseStreamEvent
else:
    ResponseStreamEvent = Any

Outcome = Literal["finished", "failed", "cancelled"]
"""How a stage, a model call or a tool call ended."""


@attrs.frozen(kw_only=True)
class EventBase:
    """Base class of all events: their common attributes and methods.

    ``Event`` is the union of the concrete classes. Use ``Event`` in annotations; a check of ``event.type``
    then narrows it to one class.

    Attributes:
        run_id: Id of the run, ``agent_run_id`` in its trace.
        parent_run_id: Id of the run that started this one, for example in a tool; None for an outermost run.
        agent: Name of the active agent; after a hand-off, the agent that took over.
        sequence: Number of the event in its run: 1, 2, 3, ... without gaps.
        time: When it happened, in UTC.
        internal: Whether it comes from a model call that a middleware makes for its own purposes.
    """

    type: ClassVar[str]

    run_id: str
    parent_run_id: str | None
    agent: str
    sequence: int
    time: datetime
    internal: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the event as JSON data: ``type`` and the attributes, with ``time`` in ISO 8601."""
        fields = {name: getattr(self, name) for name in _names(type(self))}
        return {"type": self.type, **fields, "time": self.time.isoformat()}

    def to_json(self) -> str:
        """Return the event as JSON text on one line, for every definition of a line break."""
        data = self.to_dict()
        text = json.dumps(data, ensure_ascii=False, default=str)
        return text if _is_plain(text) else json.dumps(data, default=str)


def _is_plain(text: str) -> bool:
    """Return whether a text can be encoded as UTF-8 and contains no Unicode line break."""
    if text.isascii():  # JSON escapes the ASCII line breaks
        return True
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, in which a model's answer may end
        return False
    return len(text.splitlines()) == 1


def _names(kind: type[EventBase]) -> list[str]:
    return [field.name for field in attrs.fields(kind)]


@attrs.frozen(kw_only=True)
class RunStarted(EventBase):
    """A run has started.

    Attributes:
        trace_id: Id of its trace; None without tracing.
    """

    type: ClassVar[Literal["run_started"]] = "run_started"

    trace_id: str | None


@attrs.frozen(kw_only=True)
class RunFinished(EventBase):
    """A run has ended without an error, or waits for an approval.

    Attributes:
        seconds: How long it took.
        output: The final output; a structured output as a dict.
        usage: ``requests``, ``input_tokens``, ``output_tokens`` and ``total_tokens`` of the run, and
            ``requests_without_usage``, whose tokens are unknown.
        waits_for_approval: Whether the run waits for an approval and has to be resumed.
        stopped: Whether ``RunStream.cancel(mode="after_turn")`` has ended it before the answer.
    """

    type: ClassVar[Literal["run_finished"]] = "run_finished"

    seconds: float
    output: Any
    usage: dict[str, int]
    waits_for_approval: bool
    stopped: bool = False


@attrs.frozen(kw_only=True)
class RunFailed(EventBase):
    """A run has ended with an error.

    Attributes:
        seconds: How long it took.
        error_type: Name of the exception's class.
        code: E-code of the exception; None unless it is a ``KantanAgentsError``.
        message: Text of the exception.
    """

    type: ClassVar[Literal["run_failed"]] = "run_failed"

    seconds: float
    error_type: str
    code: str | None
    message: str


@attrs.frozen(kw_only=True)
class RunCancelled(EventBase):
    """A run was cancelled from outside.

    Attributes:
        seconds: How long it took.
    """

    type: ClassVar[Literal["run_cancelled"]] = "run_cancelled"

    seconds: float


@attrs.frozen(kw_only=True)
class StageEntered(EventBase):
    """A stage has started.

    Attributes:
        stage: Its name in the pipeline.
    """

    type: ClassVar[Literal["stage_entered"]] = "stage_entered"

    stage: str


@attrs.frozen(kw_only=True)
class StageLeft(EventBase):
    """A stage has ended.

    Attributes:
        stage: Its name in the pipeline.
        seconds: How long it took, including everything inside its ``call_next``.
        outcome: How it ended.
    """

    type: ClassVar[Literal["stage_left"]] = "stage_left"

    stage: str
    seconds: float
    outcome: Outcome


@attrs.frozen(kw_only=True)
class ModelCallStarted(EventBase):
    """A model call has started.

    Attributes:
        call_id: Id of the model call, the same in its other events; unique within the run.
        model: Name of the model; None if it has no name.
    """

    type: ClassVar[Literal["model_call_started"]] = "model_call_started"

    call_id: str
    model: str | None


@attrs.frozen(kw_only=True)
class TextDelta(EventBase):
    """The model has produced a piece of its answer. Only streamed runs emit it.

    Attributes:
        call_id: Id of the model call.
        text: The new piece of text.
    """

    type: ClassVar[Literal["text_delta"]] = "text_delta"

    call_id: str
    text: str


@attrs.frozen(kw_only=True)
class ReasoningDelta(EventBase):
    """The model has produced a piece of its reasoning, or of a summary of it. Only streamed runs emit it.

    Attributes:
        call_id: Id of the model call.
        text: The new piece of text.
    """

    type: ClassVar[Literal["reasoning_delta"]] = "reasoning_delta"

    call_id: str
    text: str


@attrs.frozen(kw_only=True)
class ToolArgumentsDelta(EventBase):
    """The model has produced a piece of the arguments of a tool call. Only streamed runs emit it.

    Attributes:
        call_id: The model's id for the call, the same in its other events.
        tool: Name of the tool.
        arguments: The new piece of the arguments, JSON text for a function tool.
    """

    type: ClassVar[Literal["tool_arguments_delta"]] = "tool_arguments_delta"

    call_id: str
    tool: str
    arguments: str


@attrs.frozen(kw_only=True)
class RawResponseEvent(EventBase):
    """The model has streamed an event. Only those who ask for raw events receive it.

    Attributes:
        call_id: Id of the model call.
        data: The event, as the ``data`` of the SDK's event of the same type. A check of ``event.data.type``
            narrows it to one class of ``openai.types.responses``.
    """

    type: ClassVar[Literal["raw_response_event"]] = "raw_response_event"

    call_id: str
    data: ResponseStreamEvent

    def to_dict(self) -> dict[str, Any]:
        """Return the event as JSON data, as ``EventBase.to_dict``."""
        data = super().to_dict()
        if hasattr(self.data, "model_dump"):  # a custom model may stream anything
            # `warnings`: the SDK and middleware make events that were never validated.
            data["data"] = self.data.model_dump(mode="json", warnings=False)
        return data


@attrs.frozen(kw_only=True)
class ModelCallFinished(EventBase):
    """A model call has ended.

    Attributes:
        call_id: Id of the model call.
        model: Name of the model; None if it has no name.
        seconds: How long it took.
        outcome: How it ended.
        usage: ``requests``, ``input_tokens``, ``output_tokens``, ``total_tokens`` and
            ``requests_without_usage``, whose tokens are unknown; None without an answer.
        error_type: Name of the exception's class; None unless the call failed.
        message: Text of the exception; None unless the call failed.
    """

    type: ClassVar[Literal["model_call_finished"]] = "model_call_finished"

    call_id: str
    model: str | None
    seconds: float
    outcome: Outcome
    usage: dict[str, int] | None
    error_type: str | None = None
    message: str | None = None


@attrs.frozen(kw_only=True)
class ToolCallStarted(EventBase):
    """The model has called a tool.

    Attributes:
        call_id: The model's id for the call, the same in its other events.
        tool: Name of the tool.
        arguments: The arguments as the model wrote them: JSON text for a function tool.
    """

    type: ClassVar[Literal["tool_call_started"]] = "tool_call_started"

    call_id: str
    tool: str
    arguments: str


@attrs.frozen(kw_only=True)
class ToolCallFinished(EventBase):
    """A tool call has ended.

    Attributes:
        call_id: Id of the call.
        tool: Name of the tool.
        seconds: How long it took.
        outcome: How it ended. A failure that goes back to the model as the result counts as ``"finished"``.
        output: The result as text; None without a result.
        error_type: Name of the exception's class; None unless the call failed.
        message: Text of the exception; None unless the call failed.
    """

    type: ClassVar[Literal["tool_call_finished"]] = "tool_call_finished"

    call_id: str
    tool: str
    seconds: float
    outcome: Outcome
    output: str | None
    error_type: str | None = None
    message: str | None = None


@attrs.frozen(kw_only=True)
class ToolCallRefused(EventBase):
    """The tool rules have refused a tool call.

    Attributes:
        call_id: Id of the call.
        tool: Name of the tool.
        seconds: How long it took.
        code: E-code of the refusal.
        message: Text of the refusal.
    """

    type: ClassVar[Literal["tool_call_refused"]] = "tool_call_refused"

    call_id: str
    tool: str
    seconds: float
    code: str
    message: str


@attrs.frozen(kw_only=True)
class HandedOff(EventBase):
    """The run continues with another agent.

    Attributes:
        to_agent: Name of the agent that takes over; ``agent`` is the one that handed off.
    """

    type: ClassVar[Literal["handed_off"]] = "handed_off"

    to_agent: str


@attrs.frozen(kw_only=True)
class Delegated(EventBase):
    """An agent has started a run of another agent, which emits its own events.

    Attributes:
        to_agent: Name of the other agent.
        child_run_id: Id of the new run.
    """

    type: ClassVar[Literal["delegated"]] = "delegated"

    to_agent: str
    child_run_id: str


@attrs.frozen(kw_only=True)
class ApprovalNeeded(EventBase):
    """A tool call needs a person's approval. The run ends here and can be resumed.

    Attributes:
        call_id: The model's id for the call.
        tool: Name of the tool.
        arguments: The arguments of the call.
    """

    type: ClassVar[Literal["approval_needed"]] = "approval_needed"

    call_id: str
    tool: str
    arguments: str


@attrs.frozen(kw_only=True)
class MCPServerLeftOut(EventBase):
    """An MCP server cannot be used, and the run continues without its tools.

    Attributes:
        server: Name of the server.
        code: E-code of the error that would have ended the run, E28.
        message: Text of the error.
    """

    type: ClassVar[Literal["mcp_server_left_out"]] = "mcp_server_left_out"

    server: str
    code: str
    message: str


@attrs.frozen(kw_only=True)
class OutputStored(EventBase):
    """A structured output has been stored in the context.

    Attributes:
        key: The context key, ``output_dest``.
    """

    type: ClassVar[Literal["output_stored"]] = "output_stored"

    key: str


Event: TypeAlias = (
    RunStarted
    | RunFinished
    | RunFailed
    | RunCancelled
    | StageEntered
    | StageLeft
    | ModelCallStarted
    | TextDelta
    | ReasoningDelta
    | ToolArgumentsDelta
    | RawResponseEvent
    | ModelCallFinished
    | ToolCallStarted
    | ToolCallFinished
    | ToolCallRefused
    | HandedOff
    | Delegated
    | ApprovalNeeded
    | MCPServerLeftOut
    | OutputStored
)
"""Any event of a run, as a union discriminated by ``type``: type checkers narrow it to ``TextDelta`` after
``if event.type == "text_delta"`` and in ``match``."""

EVENT_KINDS: tuple[type[Event], ...] = (
    RunStarted,
    RunFinished,
    RunFailed,
    RunCancelled,
    StageEntered,
    StageLeft,
    ModelCallStarted,
    TextDelta,
    ReasoningDelta,
    ToolArgumentsDelta,
    RawResponseEvent,
    ModelCallFinished,
    ToolCallStarted,
    ToolCallFinished,
    ToolCallRefused,
    HandedOff,
    Delegated,
    ApprovalNeeded,
    MCPServerLeftOut,
    OutputStored,
)
"""All event classes."""
