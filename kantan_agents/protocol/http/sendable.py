"""A conversation as an API takes it: what it would refuse, and the model need not see, is made to fit."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from kantan_agents.errors import UntranslatableError
from kantan_agents.protocol.provider import Message, ProviderContext
from kantan_agents.protocol.translate.losses import Losses
from kantan_agents.protocol.translate.media import Media
from kantan_agents.protocol.types import MEDIA, ContentSegment, ProviderToolCall

_OF_A_VALUE = 32
_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def sendable(prompt: str, context: ProviderContext, owner: str) -> tuple[Message, ...]:
    """Return the conversation to send; that is the prompt alone where there is none so far.

    The translations refuse what they would lose. In a run that would be the end, so here

    - fields of ``extra`` that are not the API's own are left out;
    - arguments that are no object, which the model was told about, stand under ``not_an_object``;
    - an id of a call that another model gave, and this API does not allow, is replaced by a digest of it;
    - a system message in the midst of the conversation is the user's;
    - ``ui`` is left out, and media that another model has made, where the API takes none of an assistant, are
      a word about them;
    - in a result for Gemini the texts come first, and media at a URL are that URL.

    Args:
        prompt: What the user has said last.
        context: The conversation.
        owner: The API's name in ``extra``.

    Raises:
        UntranslatableError: E52, there are results of tools without the calls they answer.
    """
    if not context.messages:
        return (Message("user", (ContentSegment.of_text(prompt),)),)
    _check_results(context.messages, owner)
    sent: list[Message] = []
    for message in context.messages:
        is_late = message.role == "system" and any(other.role != "system" for other in sent)
        sent.append(
            attrs.evolve(
                message,
                role="user" if is_late else message.role,
                segments=tuple(_segments(message, owner)),
                tool_call_id=None if message.tool_call_id is None else _id(message.tool_call_id),
                tool_name=message.tool_name if owner == "gemini" else None,
                extra=_own(message.extra, owner),
            )
        )
    return tuple(sent)


def _check_results(messages: Iterable[Message], owner: str) -> None:
    losses = Losses(owner, owner)
    called: set[str | None] = set()
    for place, message in enumerate(messages):
        called |= {segment.tool_call.id for segment in message.segments if segment.tool_call is not None}
        if message.role == "tool" and message.tool_call_id not in called:
            losses.add(
                f"messages[{place}].toolCallId",
                f"answers {str(message.tool_call_id)[:80]!r}, a call that is not in the conversation: its "
                "history was cut between a call and its result; cut it before the call, or behind the result",
            )
    losses.check()


def check_said(messages: Sequence[Message], written: Sequence[Mapping[str, Any]], format: str) -> None:
    """Make sure that there is something to answer, now that empty texts are left out.

    Args:
        messages: The conversation.
        written: The same as it is sent.
        format: The format's name, for the error.

    Raises:
        UntranslatableError: E52, there is nothing, or nothing after the model's own last answer.
    """
    is_new = bool(written) and (messages[-1].role != "user" or written[-1]["role"] == "user")
    if not is_new:
        problem = f"messages[{len(messages) - 1}]: has no text and no media, and there is nothing to answer"
        raise UntranslatableError(format=format, problems=[problem])


def _segments(message: Message, owner: str) -> Iterable[ContentSegment]:
    segments: Iterable[ContentSegment] = message.segments
    if message.role == "tool" and owner == "gemini":
        segments = sorted(map(_without_url, segments), key=lambda segment: segment.type != "text")
    for segment in segments:
        if segment.type == "ui":
            continue
        if segment.type in MEDIA and message.role == "assistant" and owner == "anthropic":
            yield ContentSegment.of_text(f"[{segment.mime_type or segment.type}]")
            continue
        call = segment.tool_call
        yield attrs.evolve(
            segment,
            extra=_own(segment.extra, owner),
            tool_call=None if call is None else _call(call, owner),
        )


def _call(call: ProviderToolCall, owner: str) -> ProviderToolCall:
    args = call.args if isinstance(call.args, Mapping) else {"not_an_object": call.args}
    return attrs.evolve(call, args=args, id=_id(call.id), extra=_own(call.extra, owner))


def _own(extra: Mapping[str, object], owner: str) -> dict[str, object]:
    return {owner: extra[owner]} if owner in extra else {}


def _id(given: str) -> str:
    return given if _ID.fullmatch(given) else f"call_{hashlib.sha256(given.encode()).hexdigest()[:32]}"


def _without_url(segment: ContentSegment) -> ContentSegment:
    url = Media.of(segment).url if segment.type in MEDIA else None
    return segment if url is None else ContentSegment.of_text(url)


def size_of(context: ProviderContext, enough: int) -> int:
    """Return how many characters are to be sent, about; no more are counted than ``enough``."""
    size = 0
    for sent in _sent(context):
        waiting = [sent]
        while waiting and size < enough:
            value = waiting.pop()
            size += _OF_A_VALUE
            if isinstance(value, str):
                size += len(value)
            elif isinstance(value, (list, tuple)):
                waiting += value
            elif isinstance(value, Mapping):
                waiting += value.values()
        if size >= enough:
            break
    return size


def _sent(context: ProviderContext) -> Iterable[Any]:
    yield context.instructions
    for message in context.messages:
        yield message.extra
        for segment in message.segments:
            yield segment.extra
            yield segment.data or segment.text
            if segment.tool_call is not None:
                yield segment.tool_call.args
    for tool in context.tools.values():
        yield tool.description
        yield tool.parameters
