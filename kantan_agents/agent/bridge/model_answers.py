"""Converts answers between the SDK's ``ModelResponse`` and last stream event."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agents import ItemHelpers, ModelBehaviorError, ModelResponse, Usage
from openai.types.responses import Response, ResponseCompletedEvent, ResponseUsage

from kantan_agents.core.answers import CUT_OFF
from kantan_agents.core.interception import ModelCall
from kantan_agents.core.usage import TOKENS
from kantan_agents.models.finish_reasons import answer_cut_off, finish_reason, mark_cut_off, replaced
from kantan_agents.models.protocol.responses import response_usage

_REQUESTS = "_agents_sdk_request_count"
"""The SDK adapters' field for the number of requests; the API has none."""


def answer_of(response: Response, *, is_request: bool = False) -> ModelResponse:
    """Return a stream's final response as a ``ModelResponse``.

    ``is_request``: it counts as one request even without reported usage.
    """
    found = response.usage
    usage = Usage(requests=1 if is_request else 0)
    if found is not None:
        usage = Usage(
            requests=getattr(found, _REQUESTS, 1),
            input_tokens=found.input_tokens,
            output_tokens=found.output_tokens,
            total_tokens=found.total_tokens,
            input_tokens_details=found.input_tokens_details,
            output_tokens_details=found.output_tokens_details,
        )
    answer = ModelResponse(
        output=list(response.output),
        usage=usage,
        response_id=response.id,
        request_id=getattr(response, "_request_id", None),
    )
    reason = finish_reason(response)
    if reason in CUT_OFF:
        mark_cut_off(answer, reason)
    return answer


def with_output(response: Response, items: list[Any]) -> Response:
    """Fill an empty output with ``items``: some servers send them only in earlier events."""
    return response if response.output or not items else response.model_copy(update={"output": items})


FAILURES = ("response.failed", "response.incomplete", "response.error", "error")
"""Types of events that end a stream without an answer."""


def broken_off(last: Any) -> Any:
    """Return the response of a stream without an answer, if it reports usage."""
    response = getattr(last, "response", None)
    is_counted = getattr(last, "type", None) in FAILURES and getattr(response, "usage", None) is not None
    return response if is_counted else None


def check_answered(last: Any) -> None:
    """Raise the SDK's ModelBehaviorError unless a stream ended with an answer."""
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
    """Return the last event of a stream; ``final`` is the model's own response."""
    usage = answer.usage
    # The SDK counts a request for any usage it gets, so without a request it gets None.
    counted = _response_usage(usage) if usage.requests or usage.total_tokens else None
    fields: dict[str, Any] = {"output": answer.output, "usage": counted}
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
    # The items come from the SDK, so they are not validated again.
    response = final.model_copy(update=fields)
    return ResponseCompletedEvent.model_construct(
        type="response.completed", response=response, sequence_number=0
    )


def _response_usage(usage: Usage) -> ResponseUsage:
    found = response_usage(usage)
    if usage.requests > 1:
        object.__setattr__(found, _REQUESTS, usage.requests)
    return found


def with_other_usage(call: ModelCall, answer: ModelResponse) -> ModelResponse:
    """Add the usage of an answer's other requests, after all middleware, which has counted them."""
    if not call._other_usage:
        return answer
    total = Usage()
    for usage in (answer.usage, *(other for other, _ in call._other_usage)):
        total.add(usage)
    return replaced(answer, usage=total)


def text_of(answer: ModelResponse) -> str:
    """Return the text of an answer."""
    return "".join(ItemHelpers.extract_text(item) or "" for item in answer.output)


def usage_of_run(usage: Usage | None, responses: Iterable[ModelResponse]) -> dict[str, int]:
    """Return a run's usage for events and log lines; 0 for missing values."""
    unknown = [response.usage.requests for response in responses if not has_tokens(response.usage)]
    return {**_numbers(usage), "requests_without_usage": sum(unknown)}


def usage_of_call(usage: Usage, *, is_request: bool = True) -> dict[str, int]:
    """Return one answer's usage for its event; ``is_request``: at least one."""
    numbers = _numbers(usage)
    if not is_request:
        return {**numbers, "requests_without_usage": 0}
    numbers["requests"] = max(numbers["requests"], 1)
    return {**numbers, "requests_without_usage": 0 if has_tokens(usage) else numbers["requests"]}


def is_cut_off(answer: ModelResponse, most: Any) -> bool:
    """Return whether an answer reached ``max_tokens``, which some models show only by usage."""
    if answer_cut_off(answer):
        return True
    written = answer.usage.output_tokens
    return isinstance(most, int) and isinstance(written, int) and written >= most


def has_tokens(usage: Usage) -> bool:
    """Return whether usage was reported: 0 is only the counters' initial value."""
    return bool(usage.total_tokens or usage.input_tokens or usage.output_tokens)


def _numbers(usage: Usage | None) -> dict[str, int]:
    return {name: getattr(usage, name, 0) for name in ("requests", *TOKENS)}
