"""Inputs and answers as messages of the OpenTelemetry conventions."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from kantan_agents.core.answers import answer_items, finish_reason_of
from kantan_agents.core.items import is_answer, is_call, is_result, parsed
from kantan_agents.traces.telemetry import conventions as names

# A longer string without a space is encoded data.
_LONGEST = 1_000
_SHOWN = 30
_TEXTS = ("input_text", "output_text", "text", "refusal", "summary_text", "reasoning_text")


def messages_of(
    given: Any, answer: Any, instructions: Any = None, finish_reason: str | None = None
) -> dict[str, list[dict[str, Any]]]:
    """Return copies of input and answer by attribute; omit empty ones."""
    system, rest = _split_system(given)
    found = {
        names.SYSTEM_INSTRUCTIONS: system or _parts(instructions),
        names.INPUT_MESSAGES: input_messages(rest),
        names.OUTPUT_MESSAGES: output_messages(answer, finish_reason),
    }
    return {name: messages for name, messages in found.items() if messages}


def _split_system(given: Any) -> tuple[list[dict[str, Any]], Any]:
    if not isinstance(given, list):
        return [], given
    system: list[dict[str, Any]] = []
    count = 0
    for item in given:
        data = _data(item)
        if not isinstance(data, dict) or data.get("role") not in ("system", "developer"):
            break
        system += _parts(data.get("content"))
        count += 1
    return system, given[count:]


def input_messages(given: Any) -> list[dict[str, Any]]:
    """Return an input as messages. Consecutive assistant items become one."""
    if given is None:
        return []
    listed: Iterable[Any] = [given] if isinstance(given, (str, dict)) else given
    items = (_data(item) for item in listed)
    return _joined(
        _message(one, "user") for item in items for one in (answer_items(item) if is_answer(item) else [item])
    )


def output_messages(answer: Any, finish_reason: str | None = None) -> list[dict[str, Any]]:
    """Return an answer as messages.

    The conventions require ``finish_reason`` in each message, and backends show none without it.
    """
    items = [_data(item) for item in answer_items(answer)]
    reason = finish_reason or finish_reason_of(items)
    messages = _joined(_message(item, "assistant") for item in items)
    return [{**message, "finish_reason": reason} for message in messages]


def _joined(messages: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    joined: list[dict[str, Any]] = []
    for message in messages:
        if joined and message["role"] == joined[-1]["role"] == "assistant":
            joined[-1]["parts"] += message["parts"]
        else:
            joined.append(message)
    return joined


def _message(item: Any, role: str) -> dict[str, Any]:
    if not isinstance(item, dict):
        return {"role": role, "parts": _parts(item)}
    kind = item.get("type")
    if is_call(item):
        call = {"type": "tool_call", "id": item.get("call_id"), "name": item.get("name")}
        return {"role": "assistant", "parts": [{**call, "arguments": parsed(item.get("arguments"))}]}
    if is_result(item):
        return _tool_response(item.get("call_id"), item.get("output"))
    if kind == "reasoning":
        texts = [*(item.get("summary") or ()), *(item.get("content") or ())]
        content = "\n".join(part["text"] for part in texts if isinstance(part, dict) and part.get("text"))
        return {"role": "assistant", "parts": [{"type": "reasoning", "content": content}]}
    if item.get("role") == "tool":
        return _tool_response(item.get("tool_call_id"), item.get("content"))
    if "role" in item:
        return {"role": str(item["role"]), "parts": _parts(item.get("content"))}
    return {"role": role, "parts": [_part(item)]}


def _tool_response(call_id: Any, output: Any) -> dict[str, Any]:
    return {
        "role": "tool",
        "parts": [{"type": "tool_call_response", "id": call_id, "response": parsed(output)}],
    }


def _parts(content: Any) -> list[dict[str, Any]]:
    if content is None:
        return []
    if isinstance(content, list):
        return [_part(_data(part)) for part in content]
    return [_part(content)]


def _part(part: Any) -> dict[str, Any]:
    if isinstance(part, dict):
        if part.get("type") in _TEXTS:
            return {"type": "text", "content": part.get("text") or part.get("refusal") or ""}
        others = {key: _without_files(part[key]) for key in part if key != "type"}
        return {"type": str(part.get("type") or "data"), **others}
    return {"type": "text", "content": part if isinstance(part, str) else json.dumps(part, default=str)}


def _without_files(value: Any) -> Any:
    """Drop files, which are megabytes."""
    if isinstance(value, dict):
        return {key: _without_files(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_files(inner) for inner in value]
    is_file = isinstance(value, str) and len(value) > _LONGEST and " " not in value[:_LONGEST]
    return f"{value[:_SHOWN]}... ({len(value)} characters)" if is_file else value


def _data(item: Any) -> Any:
    if hasattr(item, "model_dump"):
        return item.model_dump(mode="json", exclude_unset=True, warnings=False)
    return item
