"""Properties of the Responses translation: a round trip preserves everything or reports what is lost."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import attrs
import pytest
from agents import TResponseInputItem
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import ContentSegment, ProviderResponse
from kantan_agents.errors import InvalidProtocolValueError, KantanAgentsError, UntranslatableError
from kantan_agents.models.protocol import Message, ToolSpec
from kantan_agents.models.protocol.responses import sdk_items
from kantan_agents.models.protocol.translate import (
    messages_from_openai_responses,
    messages_to_openai_responses,
    response_from_openai_responses,
    response_to_openai_responses,
    tools_from_openai_responses,
    tools_to_openai_responses,
)
from kantan_agents.testing.strategies import json_values
from tests.models.protocol.scripted import call, messages, responses, segments, text, tools
from tests.models.protocol.strategies import METADATA, calls, conversations, text_segments
from tests.models.protocol.strategies import responses as translated_responses


def without_ids(parts: Any) -> list[ContentSegment]:
    return [
        part if part.tool_call is None else attrs.evolve(part, tool_call=attrs.evolve(part.tool_call, id="-"))
        for part in parts
    ]


@given(st.lists(segments(), max_size=6))
def test_segments_survive_a_round_trip_through_the_sdks_items_in_order(parts: list[ContentSegment]) -> None:
    items = sdk_items(parts)
    stored = json.loads(json.dumps([item.model_dump(exclude_unset=True) for item in items]))
    found = messages_from_openai_responses(stored)
    back = [segment for message in found for segment in message.segments]
    assert without_ids(back) == without_ids(parts)
    ids = [part.tool_call.id for part in back if part.tool_call is not None]
    assert len(set(ids)) == len(ids)
    given_ids = [part.tool_call.id for part in parts if part.tool_call is not None]
    assert [one for one, other in zip(ids, given_ids, strict=True) if given_ids.count(other) == 1] == [
        one for one in given_ids if given_ids.count(one) == 1
    ]


def without_foreign_extra(segment: ContentSegment) -> ContentSegment:
    """Return a segment without the data of other formats in its ``extra``."""
    extra = {name: value for name, value in segment.extra.items() if name != "anthropic"}
    tool_call = segment.tool_call
    tool_call = None if tool_call is None else attrs.evolve(tool_call, extra={})
    return attrs.evolve(segment, extra=extra, tool_call=tool_call)


@given(responses() | translated_responses())
def test_a_response_survives_a_round_trip_or_every_loss_is_reported(response: ProviderResponse) -> None:
    try:
        wire = response_to_openai_responses(response)
    except UntranslatableError:
        return
    assert "provider_data" not in json.dumps(wire)
    back = response_from_openai_responses(json.loads(json.dumps(wire)))
    assert list(back.segments) == [without_foreign_extra(segment) for segment in response.segments]
    assert back.metadata == (response.metadata or None)


@given(st.lists(text_segments(), max_size=3), st.lists(calls(), max_size=3), METADATA)
def test_texts_and_calls_survive_in_any_order(texts: list[Any], tool_calls: list[Any], metadata: Any) -> None:
    response = ProviderResponse([*tool_calls[:1], *texts, *tool_calls[1:]], metadata)
    assert response_from_openai_responses(response_to_openai_responses(response)) == response


@given(conversations())
def test_a_conversation_that_every_format_can_hold_survives(found: tuple[Message, ...]) -> None:
    assert messages_from_openai_responses(messages_to_openai_responses(found)) == found


def test_results_directly_follow_the_calls_even_if_text_follows_the_calls() -> None:
    parts = [
        text("a"),
        call("f", {}, "1"),
        ContentSegment("ui", ui=1),
        text("b"),
        call("g", {}, "2"),
        text("c"),
    ]
    items: list[Any] = [item.model_dump(exclude_unset=True) for item in sdk_items(parts)]
    assert [item["type"] for item in items] == ["message", "function_call", "function_call"]
    (message,) = messages_from_openai_responses(items)
    assert list(message.segments) == parts
    items[0]["content"] = [{"type": "output_text", "text": "masked", "annotations": []}]
    (message,) = messages_from_openai_responses(items)
    assert [part.text or part.type for part in message.segments] == ["masked", "ui", "tool_call", "tool_call"]


def test_an_id_that_is_too_long_for_openai_is_replaced_by_a_digest() -> None:
    longs = [call("f", {}, "x" * 200), call("f", {}, "x" * 199 + "y"), call("f", {}, "z" * 64)]
    first, again = ([getattr(item, "call_id", "") for item in sdk_items(longs)] for _ in range(2))
    assert first == again
    assert len(set(first)) == 3
    assert [len(one) <= 64 for one in first] == [True] * 3
    assert first[2] == "z" * 64


def merged(conversation: list[Message]) -> list[Message]:
    """Join successive messages of the assistant and drop empty ones, as the format does."""
    found: list[Message] = []
    for message in conversation:
        parts = [without_foreign_extra(part) for part in without_ids(message.segments)]
        if message.role == "assistant" and not parts:
            continue
        if found and found[-1].role == message.role == "assistant":
            found[-1] = attrs.evolve(found[-1], segments=[*found[-1].segments, *parts])
        else:
            found.append(attrs.evolve(message, segments=parts, tool_name=None))
    return found


@given(st.lists(messages(), max_size=4))
def test_a_conversation_survives_a_round_trip_or_every_loss_has_a_path(conversation: list[Message]) -> None:
    try:
        items = messages_to_openai_responses(conversation)
    except UntranslatableError as error:
        unplaced = [problem for problem in error.problems if not problem.startswith("messages[")]
        assert unplaced == []
        return
    assert "provider_data" not in json.dumps(items)
    back = list(messages_from_openai_responses(json.loads(json.dumps(items))))
    assert merged(back) == merged(conversation)


@given(st.lists(tools(), max_size=3))
def test_tools_survive_a_round_trip(listed: list[ToolSpec]) -> None:
    assert tools_from_openai_responses(tools_to_openai_responses(listed)) == tuple(listed)


@given(st.lists(json_values() | st.dictionaries(st.sampled_from(["type", "role", "content"]), json_values())))
def test_any_items_are_read_or_raise_a_kantan_agents_error(items: list[Any]) -> None:
    given: Any = items
    for read in (
        lambda: messages_from_openai_responses(given),
        lambda: tools_from_openai_responses(given),
        lambda: response_from_openai_responses({"output": given, "usage": given, "id": given}),
        lambda: [response_from_openai_responses(item) for item in given],
    ):
        with contextlib.suppress(KantanAgentsError):
            read()


def extra_fields(**fields: Any) -> dict[str, Any]:
    return {"openai_responses": {"fields": fields}}


def test_media_of_a_user_are_read_in_every_form() -> None:
    content: list[Any] = [
        {"type": "input_text", "text": "look"},
        {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "low"},
        {"type": "input_image", "image_url": "https://example.com/a.png", "detail": "auto"},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "mp3"}},
        {"type": "input_file", "filename": "a.mp4", "file_data": "data:video/mp4;base64,aGk="},
        {"type": "input_file", "filename": "b.png", "file_data": "aGk="},
        {"type": "video_url", "video_url": {"url": "https://example.com/a.mp4"}},
        {"type": "ui", "ui": {"component": "Chart"}},
    ]
    items: list[TResponseInputItem] = [{"role": "user", "content": content}]
    (message,) = messages_from_openai_responses(items)
    assert [segment.to_dict() for segment in message.segments] == [
        {"type": "text", "text": "look"},
        {"type": "image", "data": "aGk=", "mimeType": "image/png", "detail": "low"},
        {"type": "image", "data": "https://example.com/a.png"},
        {"type": "audio", "data": "aGk=", "mimeType": "audio/mp3"},
        {"type": "video", "data": "aGk=", "mimeType": "video/mp4", **extra_fields(filename="a.mp4")},
        {
            "type": "image",
            "data": "aGk=",
            "mimeType": "image/png",
            **extra_fields(filename="b.png", type="input_file"),
        },
        {"type": "video", "data": "https://example.com/a.mp4"},
        {"type": "ui", "ui": {"component": "Chart"}},
    ]


def test_items_that_are_not_messages_are_read() -> None:
    items: list[Any] = [
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": "go"},
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "function_call", "call_id": "1", "name": "f", "arguments": '{"a": NaN}'},
        {"type": "function_call", "call_id": "2", "name": "g", "arguments": ""},
        {"type": "image_generation_call", "id": "i", "result": "aGk=", "status": "completed"},
        {"type": "function_call_output", "call_id": "1", "output": [{"type": "input_text", "text": "one"}]},
        {"type": "function_call_output", "call_id": "9", "output": "nine"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}], "type": "message"},
    ]
    system, user, assistant, one, nine, last = messages_from_openai_responses(items)
    assert (system.role, user.text, last.text) == ("system", "go", "no")
    first, second, image = assistant.segments
    assert first.tool_call is not None
    assert first.tool_call.args == '{"a": NaN}'
    assert second.tool_call is not None
    assert second.tool_call.args == {}
    assert (image.type, image.data, image.mime_type) == ("image", "aGk=", "image/png")
    assert (one.text, one.tool_call_id, one.tool_name) == ("one", "1", "f")
    assert (nine.text, nine.tool_name) == ("nine", None)


def test_everything_that_cannot_be_translated_is_reported() -> None:
    items: list[Any] = [
        {"role": "user", "content": [{"type": "input_file", "file_id": "file_1"}]},
        {"type": "item_reference", "id": "x"},
        {"role": "user", "content": [{"type": "input_image", "file_id": "file_2"}, 3]},
        {"type": "computer_call", "call_id": "c"},
    ]
    with pytest.raises(UntranslatableError) as caught:
        messages_from_openai_responses(items)
    assert caught.value.code == "E52"
    paths = [problem.split(":")[0] for problem in caught.value.problems]
    assert paths == [
        "input[0].content[0]",
        "input[1]",
        "input[2].content[0]",
        "input[2].content[1]",
        "input[3]",
    ]
    with pytest.raises(UntranslatableError, match="web_search"):
        tools_from_openai_responses([{"type": "web_search"}])
    with pytest.raises(InvalidProtocolValueError):
        tools_from_openai_responses([{"type": "function"}])


@pytest.mark.parametrize(
    "item",
    [
        {"type": "function_call", "call_id": "1", "arguments": "{}"},
        {"type": "function_call", "call_id": 1, "name": "f", "arguments": "{}"},
        {"type": "function_call", "call_id": "1", "name": "\ud800", "arguments": "{}"},
        {"role": "assistant", "content": "a", "provider_data": {"kantan_agents": {"segments": [1]}}},
        {"role": "assistant", "content": "a", "provider_data": {"kantan_agents": {"segments": [[0, {}]]}}},
        {"role": "assistant", "content": "a", "provider_data": {"kantan_agents": {"extras": [1]}}},
        {"role": "user", "content": 3},
        {"role": "user", "content": ["a"]},
        {"role": "nobody", "content": "a"},
        "a",
    ],
)
def test_an_invalid_item_raises_an_error_with_its_path(item: Any) -> None:
    with pytest.raises((UntranslatableError, InvalidProtocolValueError)) as caught:
        messages_from_openai_responses([{"role": "user", "content": "hi"}, item])
    assert all(problem.startswith("input[1]") for problem in caught.value.data["problems"])


def test_provider_data_of_other_libraries_are_ignored() -> None:
    for data in (None, 3, {"other": 1}, {"kantan_agents": 3}):
        item: Any = {"role": "assistant", "content": "a", "provider_data": data}
        assert messages_from_openai_responses([item]) == (Message("assistant", [text("a")]),)


def test_images_that_openai_generated_become_image_segments() -> None:
    generated = {"type": "image_generation_call", "result": "aGk=", "output_format": "webp"}
    response = response_from_openai_responses({"output": [generated, {"type": "web_search_call"}]})
    assert [segment.mime_type for segment in response.segments] == ["image/webp"]
    assert response.metadata is None
    with pytest.raises(UntranslatableError, match="computer_call"):
        response_from_openai_responses({"output": [{"type": "computer_call"}]})
    with pytest.raises(UntranslatableError, match="priority"):
        tools_to_openai_responses([ToolSpec("f", extra={"priority": 1})])


def test_texts_rewritten_by_a_middleware_are_the_ones_that_are_read() -> None:
    (item,) = [item.model_dump() for item in sdk_items([text("a"), ContentSegment("ui", ui=1), text("b")])]
    item["content"] = [{"type": "output_text", "text": "masked", "annotations": []}]
    (message,) = messages_from_openai_responses([item])
    assert [segment.to_dict() for segment in message.segments] == [
        {"type": "text", "text": "masked"},
        {"type": "ui", "ui": 1},
    ]


def test_a_call_id_that_was_used_before_is_replaced() -> None:
    first, second = sdk_items([call("f", {}, "a"), call("f", {}, "b")], used_ids={"a"})
    assert getattr(first, "call_id", "") not in ("a", "b")
    assert getattr(second, "call_id", "") == "b"
