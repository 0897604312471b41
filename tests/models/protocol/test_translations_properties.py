"""Properties of every translation: a round trip returns the same value, or an error names each loss."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kantan_agents import ContentSegment, ProviderResponse
from kantan_agents.errors import InvalidProtocolValueError, UntranslatableError
from kantan_agents.models.protocol import Message, ToolSpec
from kantan_agents.models.protocol.translate import anthropic, gemini, openai_chat
from kantan_agents.models.protocol.translate.media import Media
from kantan_agents.testing.strategies import json_values
from tests.models.protocol.strategies import (
    METADATA,
    calls,
    conversations,
    messages,
    responses,
    text_segments,
    tools,
)
from tests.models.protocol.wire_server import recorded


@attrs.frozen
class Format:
    name: str
    tools_to: Callable[[Iterable[ToolSpec]], Any]
    tools_from: Callable[[Any], tuple[ToolSpec, ...]]
    response_to: Callable[[ProviderResponse], Any]
    response_from: Callable[[Any], ProviderResponse]
    messages_to: Callable[[Iterable[Message]], Any]
    messages_from: Callable[[Any], tuple[Message, ...]]
    is_empty_dropped: bool = True
    joins_system: bool = True


FORMATS = [
    Format(
        "chat",
        openai_chat.tools_to_openai_chat,
        openai_chat.tools_from_openai_chat,
        openai_chat.response_to_openai_chat,
        openai_chat.response_from_openai_chat,
        openai_chat.messages_to_openai_chat,
        openai_chat.messages_from_openai_chat,
        is_empty_dropped=False,
        joins_system=False,
    ),
    Format(
        "anthropic",
        anthropic.tools_to_anthropic,
        anthropic.tools_from_anthropic,
        anthropic.response_to_anthropic,
        anthropic.response_from_anthropic,
        anthropic.messages_to_anthropic,
        anthropic.messages_from_anthropic,
    ),
    Format(
        "gemini",
        gemini.tools_to_gemini,
        gemini.tools_from_gemini,
        gemini.response_to_gemini,
        gemini.response_from_gemini,
        gemini.messages_to_gemini,
        gemini.messages_from_gemini,
    ),
]
TYPES_OF_URLS = {
    "https://example.com/a.png": "image/png",
    "https://example.com/a.mp4": "video/mp4",
    "https://example.com/a.pdf": "application/pdf",
}
NAMES_FILES = {"chat", "anthropic"}  # Gemini has no names of files

each_format = pytest.mark.parametrize("wire", FORMATS, ids=lambda wire: wire.name)


def check_problems(problems: Iterable[str]) -> None:
    paths = [problem.partition(":")[0] for problem in problems]
    assert paths
    assert all(paths)


def through_json(data: Any) -> Any:
    return json.loads(json.dumps(data, allow_nan=False))


def plain_media(segment: ContentSegment, wire: Format) -> ContentSegment:
    """Return a segment as a round trip changes it: data URLs become base64, missing types are filled in."""
    kept = {wire.name, "detail"} | (
        {"filename"} if segment.type == "file" and wire.name in NAMES_FILES else set()
    )
    extra = {name: value for name, value in segment.extra.items() if name in kept and value != ""}
    segment = attrs.evolve(segment, extra=extra)
    if segment.tool_call is not None:
        return attrs.evolve(segment, tool_call=attrs.evolve(segment.tool_call, extra={}))
    if segment.data is None:
        return segment
    media = Media.of(segment)
    mime = media.mime
    if wire.name == "gemini" and mime is None and media.url is not None:
        mime = TYPES_OF_URLS[media.url]
    return attrs.evolve(segment, data=media.url or media.base64, mime_type=mime)


def normal(found: Iterable[Message], wire: Format) -> list[Message]:
    """Return messages as a round trip changes them: tool names are filled in, empty content is dropped."""
    names: dict[str, str] = {}
    out: list[Message] = []
    for message in found:
        segments = message.segments
        if wire.is_empty_dropped and message.role != "tool":
            segments = tuple(segment for segment in segments if segment.type != "text" or segment.text)
        if wire.name == "anthropic":
            segments = tuple(
                segment for segment in segments if segment.type != "text" or (segment.text or "").strip()
            )
        segments = tuple(plain_media(segment, wire) for segment in segments)
        name = message.tool_name or names.get(message.tool_call_id or "")
        names |= {segment.tool_call.id: segment.tool_call.name for segment in segments if segment.tool_call}
        if not segments and wire.is_empty_dropped and message.role != "tool":
            continue
        if wire.joins_system and message.role == "system" and out:
            out[-1] = attrs.evolve(out[-1], segments=(*out[-1].segments, *segments))
            continue
        out.append(
            attrs.evolve(message, segments=segments, tool_name=name if message.role == "tool" else None)
        )
    return out


@each_format
@settings(max_examples=20)
@given(response=responses())
def test_a_response_survives_a_round_trip_or_every_loss_is_reported(
    wire: Format, response: ProviderResponse
) -> None:
    try:
        written = wire.response_to(response)
    except UntranslatableError as error:
        check_problems(error.problems)
        return
    segments = tuple(plain_media(segment, wire) for segment in response.segments)
    assert wire.response_from(through_json(written)) == ProviderResponse(segments, response.metadata or None)


@each_format
@settings(max_examples=20)
@given(text=text_segments(), tool_calls=st.lists(calls(), max_size=3), metadata=METADATA)
def test_every_format_can_hold_text_and_calls(
    wire: Format, text: ContentSegment, tool_calls: list[ContentSegment], metadata: Any
) -> None:
    response = ProviderResponse((text, *tool_calls), metadata)
    assert wire.response_from(through_json(wire.response_to(response))) == response


@each_format
@settings(max_examples=20)
@given(found=conversations())
def test_every_format_can_hold_a_conversation(wire: Format, found: tuple[Message, ...]) -> None:
    back = wire.messages_from(through_json(wire.messages_to(found)))
    assert list(back) == normal(found, wire)


@each_format
@settings(max_examples=20)
@given(found=st.lists(messages(), max_size=4))
def test_messages_survive_a_round_trip_or_every_loss_is_reported(wire: Format, found: list[Message]) -> None:
    try:
        written = wire.messages_to(found)
    except UntranslatableError as error:
        check_problems(error.problems)
        return
    assert list(wire.messages_from(through_json(written))) == normal(found, wire)


@each_format
@settings(max_examples=20)
@given(found=st.lists(tools(), max_size=3))
def test_tools_survive_a_round_trip(wire: Format, found: list[ToolSpec]) -> None:
    assert list(wire.tools_from(through_json(wire.tools_to(found)))) == found


@each_format
@settings(max_examples=20)
@given(data=json_values(max_leaves=12))
def test_any_data_give_a_value_or_a_problem_with_a_path(wire: Format, data: Any) -> None:
    for read in (wire.response_from, wire.messages_from, wire.tools_from):
        try:
            read(data)
        except InvalidProtocolValueError as error:
            check_problems(error.problems)


@st.composite
def corrupted(draw: Any, body: Any) -> Any:
    """Draw a recorded body with one value replaced by another."""
    body = json.loads(json.dumps(body))
    container = body
    while isinstance(container, (dict, list)) and container:
        key = (
            draw(st.sampled_from(sorted(container)))
            if isinstance(container, dict)
            else draw(st.integers(0, len(container) - 1))
        )
        inner = container[key]
        if not isinstance(inner, (dict, list)) or not inner or draw(st.integers(0, 3)) == 0:
            container[key] = draw(json_values(max_leaves=2))
            break
        container = inner
    return body


RECORDED = {
    "chat": ["chat_tool_calls", "chat_refusal", "chat_audio", "chat_request"],
    "anthropic": ["anthropic_tool_use", "anthropic_citations", "anthropic_request"],
    "gemini": ["gemini_function_calls", "gemini_image", "gemini_blocked", "gemini_request", "gemini_tools"],
}


@each_format
@settings(max_examples=60)
@given(data=st.data())
def test_a_corrupted_body_is_read_and_written_or_its_problems_are_reported(
    wire: Format, data: st.DataObject
) -> None:
    body = data.draw(corrupted(recorded(data.draw(st.sampled_from(RECORDED[wire.name])))))
    translations: list[tuple[Any, Any]] = [
        (wire.response_from, wire.response_to),
        (wire.messages_from, wire.messages_to),
        (wire.tools_from, wire.tools_to),
    ]
    for read, write in translations:
        try:
            value = read(body)
        except InvalidProtocolValueError as error:
            check_problems(error.problems)
            continue
        try:
            written = write(value)
        except UntranslatableError as error:
            check_problems(error.problems)
        else:
            read(through_json(written))


@each_format
@given(extra=json_values(max_leaves=6), metadata=json_values(max_leaves=4))
@settings(max_examples=30)
def test_unusual_data_in_extra_are_written_or_reported(wire: Format, extra: Any, metadata: Any) -> None:
    owner = "openai" if wire.name == "chat" else wire.name
    parts = dict.fromkeys(
        ("fields", "before", "after", "usage", "choice", "message", "candidate", "content"), extra
    )
    for segments in (extra, parts, {"fields": {"x": extra}}, {"before": [{"type": extra}]}):
        segment = ContentSegment("text", text="x", extra={owner: segments})
        for response in (
            ProviderResponse([segment], {"usage": metadata}),
            ProviderResponse([ContentSegment.of_text("x")], metadata, extra={owner: segments}),
        ):
            try:
                json.dumps(wire.response_to(response))
            except UntranslatableError as error:
                check_problems(error.problems)
