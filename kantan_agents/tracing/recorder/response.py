"""What the SDK's ``response`` spans know but do not export: what went in and what came out."""

from __future__ import annotations

from typing import Any

_SAYS = {"message", "reasoning"}


def response_data(span_data: Any) -> dict[str, Any]:
    """Return input, output and model of a ``response`` span; nothing that the span does not hold.

    The output is the text, if that is all there is, else the list of items: kantan-llm finds tool calls in
    it. With sensitive data switched off the SDK puts neither on the span.
    """
    data: dict[str, Any] = {}
    given = getattr(span_data, "input", None)
    if given is not None:
        data["input"] = [_as_data(item) for item in given] if isinstance(given, list) else given
    response = getattr(span_data, "response", None)
    if response is None:
        return data
    items = list(getattr(response, "output", None) or ())
    if all(getattr(item, "type", None) in _SAYS for item in items):
        data["output"] = "".join(_texts(items))
    else:
        data["output"] = [_as_data(item) for item in items]
    data["model"] = getattr(response, "model", None)
    return data


def _texts(items: list[Any]) -> list[str]:
    return [
        str(getattr(part, "text", None) or getattr(part, "refusal", None) or "")
        for item in items
        if item.type == "message"
        for part in item.content
    ]


def _as_data(item: Any) -> Any:
    if hasattr(item, "model_dump"):
        return item.model_dump(mode="json", exclude_unset=True, warnings=False)
    return item
