"""Fits odd chat completions replies to the SDK, streamed or not.

Local servers omit ids, types and numbers, and send arguments as objects, content as lists, and reasoning and
calls as text (``text_forms.py``). The plain SDK raises a Python error, or mistakes a call for an answer. The
span has the original.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from openai import BaseModel
from openai.types.chat.chat_completion_message_function_tool_call import (
    ChatCompletionMessageFunctionToolCall,
    Function,
)

from kantan_agents.models.text_forms import TextCall, TextReader, begins_form
from kantan_agents.support.log import get_logger

_NUMBERS: Final = ("prompt_tokens", "completion_tokens", "total_tokens")
_DETAILS: Final = ("prompt_tokens_details", "completion_tokens_details")
_log = get_logger("kantan_agents.models")


def is_usual(answer: Any) -> bool:
    """Return whether the SDK can read an answer unchanged."""
    try:
        message, usage = answer.choices[0].message, answer.usage
        content = message.content
        if content is not None and (type(content) is not str or begins_form(content)):
            return False
        for call in message.tool_calls or ():
            given = call.function
            if call.type != "function" or not call.id:
                return False
            if not type(call.id) is type(given.arguments) is type(given.name) is str:
                return False
        return usage is None or (
            type(usage.prompt_tokens) is type(usage.completion_tokens) is type(usage.total_tokens) is int
        )
    except (AttributeError, LookupError, TypeError):
        return False


def fit_answer(answer: Any, new_reader: Callable[[], TextReader]) -> None:
    """Fit a complete answer to the SDK."""
    choice = next(iter(objects_in(answer.choices)), None)
    message: Any = getattr(choice, "message", None)
    if not is_object(message):
        return
    received = data_of(answer)
    answer.usage = fitted_usage(answer.usage)
    calls = objects_in(message.tool_calls)
    for call in calls:
        fit_call(call)
        if call.type != "custom":
            call.type, call.id = "function", call.id or ""
    fit_content(message)
    reader = new_reader()
    if calls:
        reader.read_no_calls()
    first, rest = reader.feed(message.content or ""), reader.rest()
    message.content = first.text + rest.text or None
    add_reasoning(message, first.reasoning + rest.reasoning)
    made = [ChatCompletionMessageFunctionToolCall.construct(**call_data(call)) for call in rest.calls]
    message.tool_calls = [*calls, *made] or None
    message.received = received


def is_object(value: Any) -> bool:
    """Return whether a value was a JSON object."""
    return isinstance(value, BaseModel)


def objects_in(value: Any) -> list[Any]:
    """Return a list's objects; none for other values."""
    return [one for one in value if is_object(one)] if isinstance(value, list) else []


def data_of(value: BaseModel) -> Any:
    """Return an object as received."""
    return value.model_dump(exclude_unset=True, warnings=False)


def fit_call(call: Any) -> None:
    """Change a call's fields to strings."""
    if call.type == "custom":
        return
    if not is_object(call.function):  # name and arguments next to the id
        given = {name: getattr(call, name, None) for name in ("name", "arguments")}
        call.function = Function.construct(**given)
    function = call.function
    function.name = function.name if isinstance(function.name, str) else ""
    if not isinstance(function.arguments, str):
        given = function.arguments
        function.arguments = "" if given is None else json.dumps(given, ensure_ascii=False)
    call.id = None if call.id is None else str(call.id)


def call_data(call: TextCall) -> dict[str, Any]:
    """Return a textual call in the API's form."""
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": "", "type": "function", "function": function}


def fit_content(message: Any) -> None:
    """Change a message's content to a string."""
    content = message.content
    if content is None or isinstance(content, str):
        return
    parts = content if isinstance(content, list) else [content]
    if not all(isinstance(part, str) or (isinstance(part, dict) and "type" in part) for part in parts):
        message.content = json.dumps(content, ensure_ascii=False)
        return
    texts: list[str] = []
    for part in parts:
        text = _text_of(part)
        if text is not None:
            texts.append(text)
        elif part["type"] == "thinking":
            inner = part.get("thinking")
            thoughts = map(_text_of, inner if isinstance(inner, list) else [inner])
            add_reasoning(message, "".join(filter(None, thoughts)))
        else:
            _log.warning("a part of an answer is not a text, so it is left out", type=str(part["type"]))
    message.content = "".join(texts)


def _text_of(part: Any) -> str | None:
    text = part.get("text") if isinstance(part, dict) else part
    return text if isinstance(text, str) else None


def add_reasoning(message: Any, thought: str) -> None:
    """Append to a message's reasoning."""
    if thought:  # the SDK's field
        message.reasoning_content = f"{getattr(message, 'reasoning_content', None) or ''}{thought}"


def fitted_usage(usage: Any) -> Any:
    """Return a complete usage, or None."""
    given = [getattr(usage, name, None) for name in _NUMBERS]
    prompt, completion, total = (one if type(one) is int else None for one in given)
    if not is_object(usage) or prompt is completion is total is None:
        return None
    counted = (prompt or 0, completion or 0)
    for name, number in zip(_NUMBERS, (*counted, sum(counted) if total is None else total), strict=True):
        setattr(usage, name, number)
    for name in _DETAILS:
        if not is_object(getattr(usage, name, None)):
            setattr(usage, name, None)
    return usage
