"""The kinds of events; frozen, and fit for JSON.

What was started ends exactly once, whatever happens: a run with ``RunFinished``, ``RunFailed`` or
``RunCancelled``, a stage with ``StageLeft``, a model call with ``ModelCallFinished``, a tool call with
``ToolCallFinished`` or ``ToolCallRefused``.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, ClassVar, Literal, TypeAlias

import attrs

Outcome = Literal["finished", "failed", "cancelled"]
"""How something that was started ended."""


@attrs.frozen(kw_only=True)
class EventBase:
    """Base class of all events: their common attributes and methods.

    ``Event`` is the union of the concrete classes. Use ``Event`` in annotations; a check of ``event.type``
    then narrows it to one class.

    Attributes:
        run_id: The run it belongs to, ``agent_run_id`` in its trace.
        parent_run_id: The run that run was started in, from a tool for example; None for the outermost.
        agent: Name of the agent at work; in a run that was handed over, the one it was handed to.
        sequence: Place in the order of the run's events, from 1 on, without gaps.
        time: When it happened, in UTC.
        internal: Whether it comes from a model call that a middleware makes for itself.
    """

    type: ClassVar[str]

    run_id: str
    parent_run_id: str | None
    agent: str
    sequence: int
    time: datetime
    internal: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON data: ``type``, then its attributes; the time in ISO 8601."""
        fields = {name: getattr(self, name) for name in _names(type(self))}
        return {"type": self.type, **fields, "time": self.time.isoformat()}

    def to_json(self) -> str:
        """Return it as JSON text, on one line whoever splits it."""
        data = self.to_dict()
        text = json.dumps(data, ensure_ascii=False, default=str)
        return text if _is_plain(text) else json.dumps(data, default=str)


def _is_plain(text: str) -> bool:
    """Whether a text can be encoded, and has no character in it that some take for the end of a line."""
    if text.isascii():  # the others are escaped
        return True
    try:
        text.encode()
    except UnicodeEncodeError:  # half a character, which a model's answer may end in
        return False
    return len(text.splitlines()) == 1


def _names(kind: type[EventBase]) -> list[str]:
    return [field.name for field in attrs.fields(kind)]


@attrs.frozen(kw_only=True)
class RunStarted(EventBase):
    """A run has begun.

    Attributes:
        trace_id: The trace it is recorded in; None without tracing.
    """

    type: ClassVar[Literal["run_started"]] = "run_started"

    trace_id: str | None


@attrs.frozen(kw_only=True)
class RunFinished(EventBase):
    """A run has ended well, or waits for an approval.

    Attributes:
        seconds: How long it took.
        output: The final output, a structured one as a dict.
        usage: ``requests``, ``input_tokens``, ``output_tokens`` and ``total_tokens`` of the run.
        waits_for_approval: Whether it has to be resumed.
    """

    type: ClassVar[Literal["run_finished"]] = "run_finished"

    seconds: float
    output: Any
    usage: dict[str, int]
    waits_for_approval: bool


@attrs.frozen(kw_only=True)
class RunFailed(EventBase):
    """A run has ended with an error.

    Attributes:
        seconds: How long it took.
        error_type: Name of the exception's class.
        code: Its E-code, None if it is not one of ours.
        message: What it says.
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
    """A stage has begun.

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
        seconds: How long it took; with everything inside it, where it goes on after ``call_next``.
        outcome: How it ended.
    """

    type: ClassVar[Literal["stage_left"]] = "stage_left"

    stage: str
    seconds: float
    outcome: Outcome


@attrs.frozen(kw_only=True)
class ModelCallStarted(EventBase):
    """A model is being asked.

    Attributes:
        call_id: Links it to its other events; unique in the run.
        model: Name of the model, None where it has none.
    """

    type: ClassVar[Literal["model_call_started"]] = "model_call_started"

    call_id: str
    model: str | None


@attrs.frozen(kw_only=True)
class TextDelta(EventBase):
    """The model has written a little more of its answer; only in a run that is streamed.

    Attributes:
        call_id: The model call.
        text: What was added.
    """

    type: ClassVar[Literal["text_delta"]] = "text_delta"

    call_id: str
    text: str


@attrs.frozen(kw_only=True)
class ModelCallFinished(EventBase):
    """A model has answered, or failed to.

    Attributes:
        call_id: The model call.
        model: Name of the model, None where it has none.
        seconds: How long it took.
        outcome: How it ended.
        usage: ``requests``, ``input_tokens``, ``output_tokens`` and ``total_tokens``; None without an answer.
        error_type: Name of the exception's class, None unless it failed.
        message: What the exception says, None unless it failed.
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
        call_id: The model's id for the call; links it to its other events.
        tool: Name of the tool.
        arguments: What it is called with, as the model wrote it: JSON text for a function tool.
    """

    type: ClassVar[Literal["tool_call_started"]] = "tool_call_started"

    call_id: str
    tool: str
    arguments: str


@attrs.frozen(kw_only=True)
class ToolCallFinished(EventBase):
    """A tool call has ended.

    Attributes:
        call_id: The call.
        tool: Name of the tool.
        seconds: How long it took.
        outcome: How it ended. A failure that the model is told about as the result is ``"finished"``.
        output: The result as text, None without one.
        error_type: Name of the exception's class, None unless it failed.
        message: What the exception says, None unless it failed.
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
    """The rules have refused a tool call.

    Attributes:
        call_id: The call.
        tool: Name of the tool.
        seconds: How long it took.
        code: E-code of the refusal.
        message: What it says.
    """

    type: ClassVar[Literal["tool_call_refused"]] = "tool_call_refused"

    call_id: str
    tool: str
    seconds: float
    code: str
    message: str


@attrs.frozen(kw_only=True)
class HandedOff(EventBase):
    """The run goes on with another agent.

    Attributes:
        to_agent: Name of that agent; ``agent`` is the one that handed over.
    """

    type: ClassVar[Literal["handed_off"]] = "handed_off"

    to_agent: str


@attrs.frozen(kw_only=True)
class Delegated(EventBase):
    """An agent has begun a run of another, which reports its own events.

    Attributes:
        to_agent: Name of that agent.
        child_run_id: That run.
    """

    type: ClassVar[Literal["delegated"]] = "delegated"

    to_agent: str
    child_run_id: str


@attrs.frozen(kw_only=True)
class ApprovalNeeded(EventBase):
    """A tool call waits for somebody's approval, and the run ends here until it is resumed.

    Attributes:
        call_id: The model's id for the call.
        tool: Name of the tool.
        arguments: What it is to be called with.
    """

    type: ClassVar[Literal["approval_needed"]] = "approval_needed"

    call_id: str
    tool: str
    arguments: str


@attrs.frozen(kw_only=True)
class OutputStored(EventBase):
    """A structured output has been put into the context.

    Attributes:
        key: Where: the ``output_dest``.
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
    | ModelCallFinished
    | ToolCallStarted
    | ToolCallFinished
    | ToolCallRefused
    | HandedOff
    | Delegated
    | ApprovalNeeded
    | OutputStored
)
"""Any event of a run, as a union that ``type`` tells apart: ``if event.type == "text_delta"`` makes it a
``TextDelta`` for a type checker, and so does ``match``."""

EVENT_KINDS: tuple[type[Event], ...] = (
    RunStarted,
    RunFinished,
    RunFailed,
    RunCancelled,
    StageEntered,
    StageLeft,
    ModelCallStarted,
    TextDelta,
    ModelCallFinished,
    ToolCallStarted,
    ToolCallFinished,
    ToolCallRefused,
    HandedOff,
    Delegated,
    ApprovalNeeded,
    OutputStored,
)
"""All of them."""
