"""Replies of a script."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias
from uuid import uuid4

import attrs
import openai
import pydantic
from agents import ModelResponse
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputItem, ResponseOutputMessage

from kantan_agents.errors import InvalidOptionError
from kantan_agents.testing.steps import ModelScriptError, ModelStep

OK = 200
_FIRST_STATUS, _LAST_STATUS = 100, 599


@attrs.frozen
class ScriptedToolCall:
    """A tool call in a reply.

    Args:
        name: Name of the tool.
        arguments: Its arguments. A str is sent unchanged, even if it is not JSON.
        id: Id of the call.
    """

    name: str
    arguments: Mapping[str, Any] | str = attrs.field(factory=dict)
    id: str = attrs.field(factory=lambda: f"call_{uuid4().hex[:12]}")

    @property
    def wire_arguments(self) -> str:
        """The arguments in the form of the API."""
        if isinstance(self.arguments, str):
            return self.arguments
        return json.dumps(self.arguments, ensure_ascii=False)


def _call_tuple(calls: Iterable[ScriptedToolCall]) -> tuple[ScriptedToolCall, ...]:
    return tuple(calls)


def _item_tuple(items: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(items)


@attrs.frozen
class Reply:
    """One reply of a scripted model, with every detail.

    Args:
        text: The text of the model.
        tool_calls: The tool calls of the model, after the text.
        status: HTTP status. Unless it is 200, the body is an API error with ``text`` as its message.
        body: Sent unchanged instead of all of the above, for replies that are not JSON.
        headers: Additional response headers, such as ``{"retry-after-ms": "1"}``.
        delay: Seconds to wait before the reply is sent.
        refusal: The message with which the model rejects the request.
        is_cut: Whether the reply ends early because it reached the token limit.
        data: A structured answer, sent as JSON text. A ``Profile`` formats it.
        items: Output items of the SDK in order, instead of text, tool calls and ``refusal``.
        usage: An ``agents.Usage`` with the tokens to report.
        events: The exact stream events of the Responses API, or a function that yields them.
        error: The exception with which the model call fails.
    """

    text: str | None = None
    tool_calls: tuple[ScriptedToolCall, ...] = attrs.field(default=(), converter=_call_tuple)
    status: int = OK
    body: bytes | None = None
    headers: Mapping[str, str] = attrs.field(factory=dict)
    delay: float = 0.0
    refusal: str | None = None
    is_cut: bool = False
    data: Any = attrs.field(default=None, kw_only=True)
    items: tuple[Any, ...] = attrs.field(default=(), converter=_item_tuple, kw_only=True)
    usage: Any = attrs.field(default=None, kw_only=True)
    events: Any = attrs.field(default=None, kw_only=True)
    error: Exception | None = attrs.field(default=None, kw_only=True)

    @classmethod
    def of(cls, value: object) -> Reply:
        """Return the reply that a value of a script describes.

        Raises:
            InvalidScriptError: E75, ``value`` does not describe a reply, or is a function.
        """
        reply = read_reply(value, "reply")
        if isinstance(reply, Reply):
            return reply
        raise InvalidScriptError(option="reply", reason=f"a function is called first, not sent: {value!r}")


PartLike: TypeAlias = str | ScriptedToolCall | Mapping[str, Any] | openai.BaseModel

ReplyLike: TypeAlias = (
    str
    | Mapping[str, Any]
    | pydantic.BaseModel
    | ScriptedToolCall
    | Sequence[PartLike]
    | Reply
    | ModelStep
    | ModelResponse
    | Exception
)
"""Everything that describes a reply: text, structured data, tool calls, SDK items, failures."""

ReplyFunction: TypeAlias = Callable[[Any], ReplyLike | Awaitable[ReplyLike]]


class InvalidScriptError(InvalidOptionError, ModelScriptError, TypeError):
    """E75: a script, or one of its replies, is not valid.

    Attributes:
        option: Its position, such as ``replies[1]``.
        reason: The problem, and the allowed values.
    """


ALLOWED = (
    "a reply is a str (text), a dict or a pydantic object (a structured answer), "
    '{"tool": name, "arguments": {...}} or a ScriptedToolCall (a tool call), {"status": 401, "text": ...} or '
    "a Reply (an HTTP response), an exception (the call fails), a list of a text, tool calls and SDK output "
    "items, a ModelStep, a ModelResponse, or a function of the call that returns one of these"
)


def read_reply(value: object, where: str) -> Reply | ReplyFunction:
    """E75 with the position for an invalid one."""
    match value:
        case Reply():
            return value
        case str():
            return Reply(value)
        case ScriptedToolCall():
            return Reply(tool_calls=(value,))
        case Exception():
            return Reply(error=value)
        case Mapping():
            return _of_mapping(value, where)
        case list() | tuple():
            return _of_parts(value, where)
    return _of_object(value, where)


def is_step_fields(value: object) -> bool:
    """Whether a dict holds the fields of a ``ModelStep``.

    Names alone are ambiguous: an answer may have a key such as ``error``.
    """
    if not isinstance(value, Mapping) or not set(value) <= set(ModelStep.__dataclass_fields__):
        return False
    output = value.get("output")
    return (
        (isinstance(output, (list, tuple)) and any(isinstance(item, openai.BaseModel) for item in output))
        or isinstance(value.get("error"), Exception)
        or callable(value.get("responder"))
        or "stream_events" in value
    )


def read_item(item: object, where: str) -> Any:
    """A dict becomes the SDK's object."""
    if isinstance(item, openai.BaseModel):
        return item
    if isinstance(item, Mapping) and isinstance(item.get("type"), str):
        try:
            return _ITEM.validate_python(dict(item))
        except pydantic.ValidationError as error:
            reason = f"{item['type']!r} is not an output item: {error.error_count()} errors, {error}"
            raise InvalidScriptError(option=where, reason=reason) from error
    raise _not_a_reply(item, where)


_ITEM: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(ResponseOutputItem)
_CALL_KEYS = {"tool", "arguments", "id"}
_REPLY_KEYS = {field.name for field in attrs.fields(Reply)}


def _of_mapping(value: Mapping[Any, Any], where: str) -> Reply | ReplyFunction:
    if _is_call(value):
        return Reply(tool_calls=(_call(value, where),))
    status = value.get("status")
    if type(status) is int and _FIRST_STATUS <= status <= _LAST_STATUS and set(value) <= _REPLY_KEYS:
        return Reply(**value)
    if is_step_fields(value):
        return _of_step(ModelStep(**value), where)
    return _structured(dict(value), where)


def _of_object(value: object, where: str) -> Reply | ReplyFunction:
    match value:
        case ModelStep():
            return _of_step(value, where)
        case ModelResponse():
            return Reply(items=[read_item(item, where) for item in value.output], usage=value.usage)
        case openai.BaseModel():
            return Reply(items=(value,))
        case pydantic.BaseModel():
            return _structured(value.model_dump(mode="json"), where)
    if callable(value) and not isinstance(value, type):
        return value
    raise _not_a_reply(value, where)


def _of_step(step: ModelStep, where: str) -> Reply | ReplyFunction:
    if step.responder is not None:
        return step.responder
    if step.error is not None:
        return Reply(error=step.error)
    items = [read_item(item, where) for item in step.output]
    return Reply(items=items, usage=step.usage, events=getattr(step, "stream_events", None))


def _of_parts(parts: Sequence[object], where: str) -> Reply:
    text: str | None = None
    items: list[Any] = []
    for index, part in enumerate(parts):
        place = f"{where}[{index}]"
        if isinstance(part, ScriptedToolCall):
            items.append(part)
        elif isinstance(part, Mapping) and _is_call(part):
            items.append(_call(part, place))
        elif isinstance(part, str):
            if index:
                reason = f"{part!r} is not at the start; a list has one text, before its tool calls"
                raise InvalidScriptError(option=place, reason=reason)
            text = part
            items.append(part)
        elif isinstance(part, openai.BaseModel) or (isinstance(part, Mapping) and "type" in part):
            items.append(read_item(part, place))
        else:
            raise _not_a_part(part, place)
    calls = items if text is None else items[1:]
    if all(isinstance(item, ScriptedToolCall) for item in calls):
        return Reply(text, calls)
    return Reply(items=items)


def _is_call(value: Mapping[Any, Any]) -> bool:
    return "tool" in value and set(value) <= _CALL_KEYS and isinstance(value["tool"], str)


def _call(value: Mapping[Any, Any], where: str) -> ScriptedToolCall:
    arguments = value.get("arguments", {})
    if not isinstance(arguments, (Mapping, str)):
        reason = f'"arguments" of a tool call are a dict or a str that is sent unchanged, not {arguments!r}'
        raise InvalidScriptError(option=where, reason=reason)
    _check_json(arguments, where)
    given = {"id": str(value["id"])} if "id" in value else {}
    return ScriptedToolCall(value["tool"], arguments, **given)


def _structured(data: Any, where: str) -> Reply:
    return Reply(_check_json(data, where), data=data)


def _check_json(data: object, where: str) -> str:
    try:
        return json.dumps(data, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        reason = f"a structured answer and the arguments of a call must be JSON: {error}"
        raise InvalidScriptError(option=where, reason=reason) from error


def _not_a_reply(value: object, where: str) -> InvalidScriptError:
    kind = "None" if value is None else f"{value!r}, of type {type(value).__name__},"
    return InvalidScriptError(option=where, reason=f"{kind} is not a reply; {ALLOWED}")


def _not_a_part(value: object, where: str) -> InvalidScriptError:
    reason = (
        f"{value!r}, of type {type(value).__name__}, cannot be part of a list; "
        f"a list has one text, then tool calls and SDK output items; {ALLOWED}"
    )
    return InvalidScriptError(option=where, reason=reason)


def texts_of(item: ResponseOutputMessage) -> tuple[str | None, str | None]:
    """Return a message's text and ``refusal``."""
    texts = [part.text for part in item.content if part.type == "output_text"]
    refusals = [part.refusal for part in item.content if part.type == "refusal"]
    return "".join(texts) if texts else None, "".join(refusals) if refusals else None


def call_of(item: ResponseFunctionToolCall) -> ScriptedToolCall:
    """Convert an output item."""
    return ScriptedToolCall(item.name, item.arguments, item.call_id)
