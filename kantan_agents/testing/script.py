"""A whole script."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

import openai
import pydantic

from kantan_agents.testing.replies import (
    ALLOWED,
    InvalidScriptError,
    Reply,
    ReplyFunction,
    ReplyLike,
    ScriptedToolCall,
    read_reply,
)

CallT = TypeVar("CallT")

Script: TypeAlias = (
    Iterable[ReplyLike | Callable[[CallT], ReplyLike | Awaitable[ReplyLike]]]
    # mypy infers list[object] for a variable that holds strings and calls.
    | Iterable[object]
    | Callable[[CallT], ReplyLike | Awaitable[ReplyLike]]
)
"""The replies in order, or one function of the call that returns the reply to each."""


def checked_script(script: object, name: str) -> Iterable[object]:
    """E75 for a single reply or no iterable."""
    single = isinstance(script, (str, bytes, Mapping, Reply, ScriptedToolCall, Exception, pydantic.BaseModel))
    if isinstance(script, Iterable) and not single:
        return script
    reason = f"a script is a list of replies or a function of the call, not {script!r}; {ALLOWED}"
    raise InvalidScriptError(option=name, reason=reason)


def read_script(script: object, name: str) -> list[Reply | ReplyFunction]:
    """E75 with the first invalid reply's position."""
    replies = enumerate(checked_script(script, name))
    return [read_reply(value, f"{name}[{index}]") for index, value in replies]


def returned_by(name: str) -> str:
    """The position in an error."""
    return f"return value of {name}"


async def resolve(step: Reply | ReplyFunction, call: Any) -> Reply:
    """A step may be an async function."""
    while not isinstance(step, Reply):
        name = getattr(step, "__name__", type(step).__name__)
        answer = step(call)
        step = read_reply(await answer if inspect.isawaitable(answer) else answer, returned_by(name))
    return step


def is_native(value: object) -> bool:
    """A list of the SDK's output items, which ``ScriptedModel`` plays unchanged."""
    return isinstance(value, (list, tuple)) and all(isinstance(item, openai.BaseModel) for item in value)
