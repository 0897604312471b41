"""Adapts content that an API would reject."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from kantan_agents.errors import UntranslatableError
from kantan_agents.models.protocol.provider import Message, ProviderContext
from kantan_agents.models.protocol.translate.losses import Losses
from kantan_agents.models.protocol.translate.media import FILENAME, Media, filename_of
from kantan_agents.models.protocol.types import MEDIA, ContentSegment, ProviderToolCall

_VALUE_SIZE = 32
_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def fit_conversation(prompt: str, context: ProviderContext, owner: str) -> tuple[Message, ...]:
    """Return the messages to send; only the prompt if the conversation is empty.

    Translations raise an error for every loss, which would abort a run. So everything that the API or its
    translation does not accept is removed or rewritten here. E52 for tool results without their calls.
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
                tool_call_id=None if message.tool_call_id is None else _allowed_id(message.tool_call_id),
                tool_name=message.tool_name if owner == "gemini" else None,
                extra=_own_extra(message.extra, owner),
            )
        )
    return tuple(sent)


def _check_results(messages: Iterable[Message], owner: str) -> None:
    losses = Losses(owner, owner)
    called: set[str | None] = set()
    for index, message in enumerate(messages):
        called |= {segment.tool_call.id for segment in message.segments if segment.tool_call is not None}
        if message.role == "tool" and message.tool_call_id not in called:
            losses.add(
                f"messages[{index}].toolCallId",
                f"is {str(message.tool_call_id)[:80]!r}, a call that is not in the conversation: the history "
                "was cut between a call and its result; cut it before the call or after the result",
            )
    losses.check()


def check_has_input(messages: Sequence[Message], written: Sequence[Mapping[str, Any]], format: str) -> None:
    """Raise E52 unless the conversation requests an answer."""
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
        if segment.type == "file" and owner == "anthropic":
            yield _document(segment, owner)
            continue
        call = segment.tool_call
        yield attrs.evolve(
            segment,
            extra=_own_extra(segment.extra, owner),
            tool_call=None if call is None else _call(call, owner),
        )


def _document(segment: ContentSegment, owner: str) -> ContentSegment:
    """Return a named file; text must be plain."""
    is_text = (segment.mime_type or "").startswith("text/") and not segment.is_url
    name = filename_of(segment)
    extra = {**_own_extra(segment.extra, owner), **({} if name is None else {FILENAME: name})}
    return attrs.evolve(segment, mime_type="text/plain" if is_text else segment.mime_type, extra=extra)


def _call(call: ProviderToolCall, owner: str) -> ProviderToolCall:
    args = call.args if isinstance(call.args, Mapping) else {"not_an_object": call.args}
    return attrs.evolve(call, args=args, id=_allowed_id(call.id), extra=_own_extra(call.extra, owner))


def _own_extra(extra: Mapping[str, object], owner: str) -> dict[str, object]:
    return {owner: extra[owner]} if owner in extra else {}


def _allowed_id(given: str) -> str:
    return given if _ID.fullmatch(given) else f"call_{hashlib.sha256(given.encode()).hexdigest()[:32]}"


def _without_url(segment: ContentSegment) -> ContentSegment:
    url = Media.of(segment).url if segment.type in MEDIA else None
    return segment if url is None else ContentSegment.of_text(url)


def size_of(context: ProviderContext, limit: int) -> int:
    """Return the approximate size, up to ``limit``."""
    size = 0
    for sent in _sent(context):
        pending = [sent]
        while pending and size < limit:
            value = pending.pop()
            size += _VALUE_SIZE
            if isinstance(value, str):
                size += len(value)
            elif isinstance(value, (list, tuple)):
                pending += value
            elif isinstance(value, Mapping):
                pending += value.values()
        if size >= limit:
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
