"""The events of tool calls."""

from __future__ import annotations

from typing import ClassVar, Literal

import attrs

from kantan_agents.core.events.base import EventBase, Outcome


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
    """A tool call has ended, with a result or an error.

    Attributes:
        call_id: Id of the call.
        tool: Name of the tool.
        seconds: How long it took.
        outcome: How it ended: ``"finished"``, ``"failed"`` or ``"cancelled"``. A failure that goes back to
            the model as the result counts as ``"finished"``.
        output: The result as a str; None without a result.
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
class ToolCallDenied(EventBase):
    """The tool rules have denied a tool call.

    Attributes:
        call_id: Id of the call.
        tool: Name of the tool.
        seconds: How long it took.
        code: E-code of the error.
        message: Text of the error.
    """

    type: ClassVar[Literal["tool_call_denied"]] = "tool_call_denied"

    call_id: str
    tool: str
    seconds: float
    code: str
    message: str


@attrs.frozen(kw_only=True)
class ApprovalNeeded(EventBase):
    """A tool call needs an approval. The run pauses here until it is resumed.

    Attributes:
        call_id: The model's id for the call.
        tool: Name of the tool.
        arguments: The arguments of the call.
    """

    type: ClassVar[Literal["approval_needed"]] = "approval_needed"

    call_id: str
    tool: str
    arguments: str
