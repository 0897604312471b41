"""Collects the parts of an answer."""

from __future__ import annotations

import json
from typing import Final

from kantan_agents.cli.chat.kept_conversation import Item, said
from kantan_agents.core.events import Event, ModelCallFinished, ModelCallStarted
from kantan_agents.core.items import call_item, is_answer, is_call, is_reasoning, result_item

INTERRUPTED: Final = "[The user interrupted this answer.]"
FAILED: Final = "[This answer failed and was not finished.]"
_NO_OUTPUT: Final = "The call was interrupted. It may have had effects."


class AnswerProgress:
    """The parts of one answer, in order.

    A canceled or failed run has no result, yet the model must know its tools' effects.
    """

    def __init__(self) -> None:
        self._parts: list[Item] = []
        self._outputs: dict[str, str] = {}
        self._arguments: dict[str, list[str]] = {}
        self._refused: set[str] = set()
        self._writing: str | None = None
        self.trace_id: str | None = None
        self.counted: tuple[str, int] | None = None
        self.asked_model = False

    @property
    def text(self) -> str:
        """The model's messages so far."""
        return "\n".join(part["content"] for part in self._parts if "content" in part)

    @property
    def ends_with_text(self) -> bool:
        """Whether the latest part is a message."""
        return bool(self._parts) and "content" in self._parts[-1]

    @property
    def did_nothing(self) -> bool:
        """Whether nothing was written and all calls were denied."""
        return all(part.get("call_id") in self._refused for part in self._parts)

    def see(self, event: Event) -> bool:
        """Add an event of the outermost run; return whether a tool call has ended."""
        match event.type:
            case "run_started":
                self.trace_id = event.trace_id
            case "model_call_started" | "model_call_finished":
                self.asked_model = True
                self.counted = _counted(event) or self.counted
            case "text_delta":
                if self._writing != event.call_id or not self.ends_with_text:
                    self._parts.append(said(""))
                self._writing = event.call_id
                self._parts[-1]["content"] += event.text
            case "tool_arguments_delta":
                self._arguments.setdefault(event.call_id, []).append(event.arguments)
            case "tool_call_started":
                # The event of an immediately denied call has no arguments.
                arguments = event.arguments or "".join(self._arguments.get(event.call_id, ())) or "{}"
                self._parts.append(_call(event.call_id, event.tool, arguments))
            case "tool_call_finished":
                failure = "" if event.message is None else f"The call failed: {event.message}"
                if event.outcome != "cancelled":
                    self._outputs[event.call_id] = event.output or failure
                return True
            case "tool_call_denied":
                self._refused.add(event.call_id)
                self._outputs[event.call_id] = event.message
                return True
        return False

    def items(self, ending: str | None = None) -> list[Item]:
        """Return the parts as input items, with ``ending`` as a final message."""
        items: list[Item] = []
        for part in self._parts:
            if "content" in part:
                items.append(part)
                continue
            call_id = part["call_id"]
            output = self._outputs.get(call_id, _NO_OUTPUT)
            items += [part, result_item(call_id, output)]
        return items if ending is None else [*items, said(ending)]


def _counted(event: ModelCallStarted | ModelCallFinished) -> tuple[str, int] | None:
    if event.type == "model_call_started":
        return None
    usage = event.usage
    if event.internal or usage is None or usage["requests"] != 1 or not usage["input_tokens"]:
        return None
    return event.model or "The model", usage["input_tokens"]


def _call(call_id: str, tool: str, arguments: str) -> Item:
    try:
        is_object = isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        is_object = False
    # Providers reject a call whose arguments are not an object.
    return call_item(call_id, tool, arguments if is_object else json.dumps({"arguments": arguments}))


def portable(items: list[Item]) -> list[Item]:
    """Return items without ids and reasoning, for any model."""
    return [_portable(item) for item in items if not is_reasoning(item)]


def _portable(item: Item) -> Item:
    if is_call(item):
        return {key: value for key, value in item.items() if key not in ("id", "status", "provider_data")}
    if is_answer(item):
        content = item["content"]
        parts = [{"text": content}] if isinstance(content, str) else content
        return said("".join(str(part.get("text") or part.get("refusal") or "") for part in parts))
    return item
