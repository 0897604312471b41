"""A model's answer in the two forms the SDK knows: in one piece, and as the end of a stream."""

from __future__ import annotations

from typing import Any

from agents import ItemHelpers, ModelBehaviorError, ModelResponse, Usage
from openai.types.responses import Response, ResponseCompletedEvent, ResponseUsage


def answer_of(response: Response) -> ModelResponse:
    """Return what ``Model.get_response`` would have returned for the end of a stream."""
    found = response.usage
    usage = Usage()
    if found is not None:
        usage = Usage(
            requests=1,
            input_tokens=found.input_tokens,
            output_tokens=found.output_tokens,
            total_tokens=found.total_tokens,
            input_tokens_details=found.input_tokens_details,
            output_tokens_details=found.output_tokens_details,
        )
    return ModelResponse(
        output=list(response.output),
        usage=usage,
        response_id=response.id,
        request_id=getattr(response, "_request_id", None),
    )


def with_output(response: Response, items: list[Any]) -> Response:
    """Return the end of a stream with ``items`` as its output, if it says nothing of an output itself.

    Some servers tell only in the events before what the answer consists of.
    """
    return response if response.output or not items else response.model_copy(update={"output": items})


FAILURES = ("response.failed", "response.incomplete", "response.error", "error")
"""Types of the events by which a stream says that there will be no answer."""


def check_answered(last: Any) -> None:
    """Make sure that a stream has come to an answer.

    Args:
        last: The event that ended it, None if there was none.

    Raises:
        ModelBehaviorError: It has not; the SDK would raise the same.
    """
    kind = getattr(last, "type", None)
    if kind == "response.completed":
        return
    response = getattr(last, "response", None)
    said = [getattr(response, name, None) for name in ("error", "incomplete_details")]
    said += [getattr(last, name, None) for name in ("code", "message")]
    reasons = "; ".join(str(reason) for reason in said if reason)
    ended = "without an answer" if kind is None else f"with {kind}: {reasons or 'no reason given'}"
    raise ModelBehaviorError(f"The model's stream ended {ended}")


def completed_event(answer: ModelResponse, final: Response | None = None) -> ResponseCompletedEvent:
    """Return the end of a stream that comes to ``answer``.

    Args:
        answer: The answer.
        final: What the model itself ended its stream with, if it did.
    """
    usage = answer.usage
    fields: dict[str, Any] = {
        "output": answer.output,
        # Without a request there is nothing to count; of what it is given, the SDK counts one.
        "usage": ResponseUsage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            total_tokens=usage.total_tokens,
            input_tokens_details=usage.input_tokens_details,
            output_tokens_details=usage.output_tokens_details,
        )
        if usage.requests or usage.total_tokens
        else None,
    }
    if final is None:
        final = Response(
            id=answer.response_id or "",
            created_at=0,
            model="",
            object="response",
            output=[],
            tool_choice="auto",
            tools=[],
            parallel_tool_calls=False,
            status="completed",
        )
    # Not built through the constructor: the SDK's items of an answer need no second check.
    response = final.model_copy(update=fields)
    return ResponseCompletedEvent.model_construct(
        type="response.completed", response=response, sequence_number=0
    )


def text_of(answer: ModelResponse) -> str:
    """Return the text of an answer."""
    return "".join(ItemHelpers.extract_text(item) or "" for item in answer.output)


def usage_numbers(usage: Usage | None) -> dict[str, int]:
    """Return usage as events and log lines tell it; zeros where there is none."""
    names = ("requests", "input_tokens", "output_tokens", "total_tokens")
    return {name: getattr(usage, name, 0) for name in names}
