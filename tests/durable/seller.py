"""A scripted model for ``shop.py``: what it says depends on the conversation alone."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kantan_agents.testing import RecordedRequest, function_call


class Seller:
    """Answers requests, and counts them by case.

    Attributes:
        asked: How often each answer was given, by case and number of results in the conversation.
    """

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def __call__(self, request: RecordedRequest) -> Any:
        """Return the next answer."""
        results = [item for item in request.input if item.get("type") == "function_call_output"]
        if "You check" in (request.system_instructions or ""):
            case = _text(request.input[0]).removeprefix("check ")
            self.asked[f"{case} checker {len(results)}"] += 1
            return "fine" if results else [_call("look", f"k{len(results)}", case=case, what="c")]
        case = (request.system_instructions or "").rsplit("Case ", 1)[1]
        self.asked[f"{case} shop {len(results)}"] += 1
        if not results:
            return [_call("look", "c1", case=case, what="a"), _call("look", "c2", case=case, what="b")]
        if len(results) == 2:
            return [_call("Task", "c3", description="d", prompt=f"check {case}", subagent_type="checker")]
        if len(results) == 3:
            return [_call("pay", "c4", case=case, amount=3)]
        return {"total": 3, "note": case}


def _call(name: str, call_id: str, **arguments: Any) -> Any:
    return function_call(name, arguments, call_id=call_id)


def _text(item: Any) -> str:
    content = item["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


ANSWERS = {
    "shop 0": "model/shop/1",
    "shop 2": "model/shop/2",
    "checker 0": "model/checker/1",
    "checker 1": "model/checker/2",
    "shop 3": "model/shop/3",
    "shop 4": "model/shop/4",
}
"""The answers of one run, and the step of each."""

EFFECTS = {
    "look a": "tool/look/c1",
    "look b": "tool/look/c2",
    "look c": "tool/look/k0",
    "pay 3": "tool/pay/c4",
}
"""What the tools of one run do, and the step of each."""
