"""Answers of models as output items.

Spans have items, text, a message or, for streamed chat completions, a whole response. All readers of spans
use this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from kantan_agents.core.items import CALLS_FOR_SDK, get, is_answer, is_message

FinishReason = Literal["stop", "tool_call", "length", "content_filter"]
"""In OpenTelemetry's vocabulary."""

CUT_OFF: Final = ("length", "content_filter")
"""Not the model's decision."""

CUT_SPAN: Final = "answer_cut_off"

_INCOMPLETE: Final = "incomplete"
_MARKED: Final = ("message", "reasoning", "function_call")
_REASONS: Final[Mapping[str, FinishReason]] = {
    "content_filter": "content_filter",
    **dict.fromkeys(
        (
            "length",
            "max_tokens",
            "max_output_tokens",
            "model_length",
            "model_context_window_exceeded",
            _INCOMPLETE,
        ),
        "length",
    ),
}


def why_cut_off(said: Any) -> FinishReason | None:
    """Translate a provider's finish reason, such as ``"MAX_TOKENS"``."""
    return _REASONS.get(said.lower()) if isinstance(said, str) else None


def finish_reason_of(items: Iterable[Any]) -> FinishReason:
    """Return the finish reason."""
    found: FinishReason = "stop"
    for item in items:
        kind = get(item, "type")
        if kind in _MARKED and get(item, "status") == _INCOMPLETE:
            return "length"
        if kind in CALLS_FOR_SDK:
            found = "tool_call"
    return found


def last_marked(items: Sequence[Any]) -> int | None:
    """Return the index of a cut-off item, if any."""
    places = (place for place in reversed(range(len(items))) if get(items[place], "type") in _MARKED)
    return next(places, None)


def answer_items(output: Any) -> list[Any]:
    """Return a span's output as the SDK's output items."""
    if output is None:
        return []
    listed = output if isinstance(output, (list, tuple)) else [output]
    return [item for one in listed for item in _items_of(one)]


def answer_text(items: Iterable[Any]) -> str:
    """Return the text of a model's messages."""
    return "".join(
        str(get(part, "text") or get(part, "refusal") or "")
        for item in items
        if is_answer(item)
        for part in _parts(get(item, "content"))
    )


def _parts(content: Any) -> Sequence[Any]:
    if isinstance(content, str):
        return [{"text": content}]
    return content if isinstance(content, Sequence) else ()


def _items_of(one: Any) -> list[Any]:
    if isinstance(one, str):
        return [_message([_text(one)])]
    if not isinstance(one, Mapping):
        return [one]
    if one.get("object") == "response" and isinstance(one.get("output"), list):
        details = one.get("incomplete_details")
        return _ended(one["output"], details.get("reason") if isinstance(details, Mapping) else None)
    if "type" not in one and ("tool_calls" in one or is_answer(one)):
        return _ended(_of_chat(one), one.get("finish_reason"))
    return [one]


def _ended(items: list[Any], said: Any) -> list[Any]:
    if why_cut_off(said) is None or finish_reason_of(items) == "length":
        return items
    place = last_marked(items)
    if place is None:
        return [*items, {**_message([]), "status": _INCOMPLETE}]
    return [*items[:place], {**items[place], "status": _INCOMPLETE}, *items[place + 1 :]]


def _of_chat(message: Mapping[str, Any]) -> list[Any]:
    items: list[Any] = []
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(reasoning, str):
        items.append({"type": "reasoning", "summary": [{"type": "summary_text", "text": reasoning}]})
    content = message.get("content")
    parts = [_text(content)] if isinstance(content, str) and content else []
    parts += content if isinstance(content, list) else []
    if message.get("refusal"):
        parts.append({"type": "refusal", "refusal": message["refusal"]})
    if parts:
        items.append(_message(parts))
    calls = message.get("tool_calls")
    return items + [_call(call) for call in (calls if isinstance(calls, (list, tuple)) else ())]


def _call(call: Any) -> Any:
    if not isinstance(call, Mapping):
        return call
    called = call.get("function") or call.get("custom")
    named = called if isinstance(called, Mapping) else call
    arguments = named.get("arguments", named.get("input"))
    call_id = call.get("call_id") or call.get("id")
    return {"type": "function_call", "call_id": call_id, "name": named.get("name"), "arguments": arguments}


def _message(content: list[Any]) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": content}


def _text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text}


def is_item(item: Any) -> bool:
    """Whether this is a conversation item."""
    if not isinstance(item, Mapping):
        return False
    return "role" in item if is_message(item) else isinstance(item["type"], str)
