"""Finish reasons of answers, and marks of cut-off answers.

The SDK's answers lack the reason. Here, the last item gets the ``status`` ``"incomplete"``, as in the
Responses API; the answer gets an attribute, since it may have no items; a stream's final response has
``incomplete_details``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Mapping
from contextvars import ContextVar
from typing import Any, Final, Literal

from agents import ModelResponse, custom_span
from openai.types.responses.response import IncompleteDetails

from kantan_agents.core.answers import (
    CUT_OFF,
    CUT_SPAN,
    FinishReason,
    finish_reason_of,
    last_marked,
    why_cut_off,
)
from kantan_agents.support.log import get_logger

_ATTRIBUTE: Final = "kantan_finish_reason"
_DETAILS: Final[Mapping[str, Literal["max_output_tokens", "content_filter"]]] = {
    "length": "max_output_tokens",
    "content_filter": "content_filter",
}
_found: ContextVar[list[FinishReason] | None] = ContextVar("kantan_agents_cut_off", default=None)
_log = get_logger("kantan_agents.models")


def finish_reason(answer: Any) -> FinishReason | None:
    """Return why an answer ended, if its provider reports it.

    Args:
        answer: The result of a run, whose last answer counts; the context of a run; or one of
            ``result.raw_responses``.

    Returns:
        ``"stop"``: the model finished. ``"tool_call"``: it calls a tool. ``"length"``: it reached its token
        limit or the model's context is full. ``"content_filter"``: the provider stopped or withheld it. None
        if no model has answered.
    """
    if isinstance(answer, Mapping):
        answer = answer.get("result")
    if hasattr(answer, "raw_responses"):
        answer = answer.raw_responses[-1] if answer.raw_responses else None
    items = getattr(answer, "output", None)
    if not isinstance(items, list):
        return None
    known: FinishReason | None = getattr(answer, _ATTRIBUTE, None) or _said_in_response(answer)
    return known or finish_reason_of(items)


def answer_cut_off(answer: Any) -> bool:
    """Return whether an answer was cut off before its end, according to ``finish_reason``.

    Args:
        answer: As for ``finish_reason``.
    """
    return finish_reason(answer) in CUT_OFF


def _said_in_response(response: Any) -> FinishReason | None:
    return why_cut_off(getattr(getattr(response, "incomplete_details", None), "reason", None))


def mark_cut_off(answer: Any, reason: FinishReason) -> None:
    """Mark an answer or final response as cut off."""
    if isinstance(answer, ModelResponse):
        setattr(answer, _ATTRIBUTE, reason)
    else:
        answer.incomplete_details = IncompleteDetails(reason=_DETAILS[reason])
    place = last_marked(answer.output)
    if place is not None and finish_reason_of(answer.output) != "length":
        answer.output[place].status = "incomplete"


def mark_streamed(response: Any) -> None:
    """Mark the items of a cut-off final response."""
    reason = _said_in_response(response)
    if reason is not None:
        mark_cut_off(response, reason)


def replaced(answer: ModelResponse, **changes: Any) -> ModelResponse:
    """Return a changed answer with its finish reason."""
    changed = dataclasses.replace(answer, **changes)
    reason = getattr(answer, _ATTRIBUTE, None)
    if reason is not None:
        setattr(changed, _ATTRIBUTE, reason)
    return changed


def note_end(said: Any, model: object, most: object) -> FinishReason | None:
    """Record and log a cut-off answer, on a span inside the model's; return the reason."""
    reason = why_cut_off(said)
    if reason is None:
        return None
    data: dict[str, Any] = {"model": str(model), "finish_reason": reason}
    if isinstance(most, int):
        data["max_tokens"] = most
    _log.warning(CUT_SPAN, **data)
    with custom_span(CUT_SPAN, data):
        pass
    found = _found.get()
    if found is not None:
        found.append(reason)
    return reason


def note_choice(choice: Any, model: object, most: object, *, is_known: bool = False) -> FinishReason | None:
    """Note the end of a chat completion, and hide the limit from the SDK.

    Newer SDKs raise an error for an empty answer at the limit. ``is_known``: noted before.
    """
    said = getattr(choice, "finish_reason", None)
    reason = why_cut_off(said) if is_known else note_end(said, model, most)
    if reason == "length":
        choice.finish_reason = "stop"
    return reason


async def with_end(asked: Awaitable[ModelResponse]) -> ModelResponse:
    """Return the answer, marked if it was cut off."""
    found: list[FinishReason] = []
    token = _found.set(found)
    try:
        answer = await asked
    finally:
        _found.reset(token)
    if found:
        mark_cut_off(answer, found[-1])
    return answer


def described_cut(answer: Any, most: object) -> str | None:
    """Return how an answer was cut off, for errors."""
    reason = finish_reason(answer)
    if reason not in CUT_OFF:
        return None
    if reason == "content_filter":
        return "the answer was cut off by the content filter of the provider"
    limit = f"max_tokens={most}" if isinstance(most, int) else "the limit of its tokens"
    return f"the answer was cut off at {limit}"
