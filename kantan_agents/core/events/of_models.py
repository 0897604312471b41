"""The events of model calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import attrs

from kantan_agents.core.answers import CUT_OFF, FinishReason
from kantan_agents.core.events.base import EventBase, Outcome

if TYPE_CHECKING:
    from openai.types.responses import ResponseStreamEvent
else:
    ResponseStreamEvent = Any


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
    """The model has written a piece of its answer. Only in streamed runs.

    Attributes:
        call_id: Id of the model call.
        text: The new piece of text.
    """

    type: ClassVar[Literal["text_delta"]] = "text_delta"

    call_id: str
    text: str


@attrs.frozen(kw_only=True)
class ReasoningDelta(EventBase):
    """The model has written a piece of its reasoning, or of a summary of it.

    Only in streamed runs, if the model shows its reasoning.

    Attributes:
        call_id: Id of the model call.
        text: The new piece of text.
    """

    type: ClassVar[Literal["reasoning_delta"]] = "reasoning_delta"

    call_id: str
    text: str


@attrs.frozen(kw_only=True)
class ToolArgumentsDelta(EventBase):
    """The model has written a piece of the arguments of a tool call. Only in streamed runs.

    All pieces come before ``tool_call_started``, which has the whole arguments, and before any check: the
    call may still be denied, or name an unknown tool. An API that sends whole calls, such as Gemini's, gives
    one piece.

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
    """The model has streamed an event. Only in streamed runs that request raw events.

    If a middleware rewrites the streamed answer, only ``response.output_text.delta`` is passed on, rewritten.

    Attributes:
        call_id: Id of the model call.
        data: The event, an object of a class in ``openai.types.responses``, as the ``data`` of the SDK's
            event of the same type; in JSON, its fields. A check of ``event.data.type`` narrows it to one
            class.
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
    """A model call has ended, with an answer or an error.

    Attributes:
        call_id: Id of the model call.
        model: Name of the model; None if it has no name.
        seconds: How long it took.
        outcome: How it ended: ``"finished"``, ``"failed"`` or ``"cancelled"``.
        usage: ``requests``, ``input_tokens``, ``output_tokens``, ``total_tokens`` and
            ``requests_without_usage``, for which the provider sent no tokens; None without an answer.
        finish_reason: Why the answer ended: ``"stop"``, ``"tool_call"``, or if it was cut off ``"length"`` or
            ``"content_filter"``; None without an answer. ``answer_cut_off`` is True for the last two.
        error_type: Name of the exception's class; None unless the call failed.
        message: Text of the exception; None unless the call failed.
        from_cache: Whether ``Cache`` gave the answer. No model was called, so the usage is zero.
        superseded: Whether it was canceled because the other request of ``Hedge`` was faster. Its ``usage``
            is None unless it is known.
    """

    type: ClassVar[Literal["model_call_finished"]] = "model_call_finished"

    call_id: str
    model: str | None
    seconds: float
    outcome: Outcome
    usage: dict[str, int] | None
    error_type: str | None = None
    message: str | None = None
    from_cache: bool = False
    superseded: bool = False
    finish_reason: FinishReason | None = None

    @property
    def answer_cut_off(self) -> bool:
        """Whether the answer was cut off, so that its end is missing."""
        return self.finish_reason in CUT_OFF


@attrs.frozen(kw_only=True)
class RetryScheduled(EventBase):
    """A request to a model has failed, and ``Retry`` or OpenAI's client waits to send it again.

    A retry of the client is within one model call; ``Retry`` makes a new one. Other clients, such as
    LiteLLM's, and custom retry policies emit no event. A replay does not wait, so it emits none either.

    Attributes:
        call_id: Id of the model call that failed.
        delay: Seconds until it is sent again; approximate if the client has chosen them.
        status: HTTP status of the answer; None if the connection has failed.
        attempt: Number of the next attempt, from 2.
        attempts: Maximum number of attempts.
    """

    type: ClassVar[Literal["retry_scheduled"]] = "retry_scheduled"

    call_id: str
    delay: float
    status: int | None
    attempt: int
    attempts: int


@attrs.frozen(kw_only=True)
class HistoryCompacted(EventBase):
    """``CompactHistory`` omits more of a conversation than before, because a request would be too long.

    The following requests have the same prefix until the next such event. The counts include earlier steps.

    Attributes:
        model: Name of the model that the request goes to; None if it has no name.
        limit: Maximum number of tokens of a request to this model.
        tokens_before: Estimated tokens of the request before compaction.
        tokens_after: Estimated tokens after compaction.
        results_removed: How many tool results are stubs now.
        results_cut: How many tool results are cut in the middle.
        items_removed: How many messages and tool calls are omitted.
        is_summarized: Whether the request has a summary of the omitted part.
        error_type: Name of the exception's class if a summary was wanted and failed; else None.
    """

    type: ClassVar[Literal["history_compacted"]] = "history_compacted"

    model: str | None
    limit: int
    tokens_before: int
    tokens_after: int
    results_removed: int
    results_cut: int
    items_removed: int
    is_summarized: bool
    error_type: str | None = None
