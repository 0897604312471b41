"""The protocol's values: validation, and conversion to and from JSON."""

from __future__ import annotations

import base64
import json
import pickle
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import ContentSegment, ProviderResponse
from kantan_agents.errors import AgentPainException, InvalidOptionError, InvalidProtocolValueError
from kantan_agents.models.protocol import Message, ProviderToolCall, ToolSpec, unreadable
from kantan_agents.testing.strategies import json_values
from tests.models.protocol.scripted import messages, responses, tools


@given(responses() | messages() | tools())
def test_every_value_survives_a_json_round_trip(value: Any) -> None:
    kind = type(value)
    assert kind.from_json(value.to_json()) == value
    assert kind.from_dict(value.to_dict()) == value
    assert json.loads(value.to_json()) == value.to_dict()
    assert pickle.loads(pickle.dumps(value)) == value


@given(json_values() | st.binary(max_size=20).map(str))
def test_any_data_give_a_value_or_an_invalid_protocol_value_error(data: Any) -> None:
    for kind in (ProviderResponse, ContentSegment, ProviderToolCall, Message, ToolSpec):
        for given_data in (data, {"segments": data}, {"type": "ui", "ui": data}, {"name": "x", "id": data}):
            try:
                value = kind.from_dict(given_data)
            except InvalidProtocolValueError:
                continue
            assert kind.from_json(value.to_json()) == value


def test_unknown_fields_are_preserved() -> None:
    data = {"segments": [{"type": "text", "text": "a", "mood": [1, None]}], "version": 2}
    response = ProviderResponse.from_dict(data)
    assert response.segments[0].extra == {"mood": [1, None]}
    assert response.to_dict() == data


def test_a_call_without_an_id_gets_a_uuid_and_arguments_may_be_null() -> None:
    first, second = (
        ProviderToolCall.from_dict({"name": "f", "args": None, "id": call_id}) for call_id in (None, "")
    )
    assert UUID(first.id) != UUID(second.id)
    assert first.args is None
    assert ProviderToolCall.from_json(first.to_json()) == first
    assert ProviderToolCall.from_dict({"name": "f"}).args == {}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({}, "type: is missing"),
        ({"type": "smell"}, "type: must be one of"),
        ({"type": "text"}, "text: is missing"),
        ({"type": "text", "text": 1}, "text: must be a str"),
        ({"type": "text", "text": "\ud800"}, "text: must be a str without lone surrogates"),
        ({"type": "text", "text": "a", "data": "aGk="}, "data: does not belong"),
        ({"type": "image"}, "data: is missing"),
        ({"type": "image", "data": ""}, "data: is empty"),
        ({"type": "image", "data": "aGk"}, "data: is neither base64 nor a URL"),
        ({"type": "image", "data": "aG k"}, "data: is neither"),
        ({"type": "image", "data": "a==="}, "data: is neither"),
        ({"type": "image", "data": "aG=k"}, "data: is neither"),
        ({"type": "image", "data": "ｱｱｱｱ"}, "data: is neither"),
        ({"type": "text", "text": "a", "mimeType": "image/png"}, "mimeType: "),
        ({"type": "tool_call", "toolCall": {"args": {}}}, "toolCall.name: is missing"),
        (
            {"type": "tool_call", "toolCall": {"name": "", "args": {}}},
            "toolCall.name: must be a non-empty str",
        ),
        ({"type": "tool_call", "toolCall": "f"}, "toolCall: must be an object"),
        ({"type": "ui"}, "ui: is missing"),
        ({"type": "ui", "ui": {"a": [float("nan")]}}, "ui.a[0]: is nan"),
        ({"type": "ui", "ui": {"a": object()}}, "ui.a: is of the type object"),
        ({"type": "ui", "ui": {1: 2}}, "ui: holds a key that is not a text"),
        ({"type": "ui", "ui": {"k" * 90: b""}}, f"ui.{'k' * 59}...: is of the type bytes"),
        ({"type": "ui", "ui": 10**5000}, "ui: is a number with too many digits"),
    ],
)
def test_an_invalid_segment_raises_an_error_that_names_the_field(data: Any, problem: str) -> None:
    with pytest.raises(InvalidProtocolValueError) as caught:
        ContentSegment.from_dict(data)
    assert caught.value.code == "E50"
    assert any(found.startswith(problem) for found in caught.value.problems), caught.value.problems


def test_all_problems_are_reported_with_their_paths() -> None:
    data = {"segments": [{"type": "text"}, {"type": "text", "text": "a"}, {"type": "image", "data": "?"}, 7]}
    with pytest.raises(InvalidProtocolValueError) as caught:
        ProviderResponse.from_dict(data)
    paths = [problem.split(":")[0] for problem in caught.value.problems]
    assert paths == ["segments[0].text", "segments[2].data", "segments[3]"]


@pytest.mark.parametrize(
    "text", ["", "{", "NaN", '{"segments": [], "metadata": Infinity}', "[" * 5000, b"\xff"]
)
def test_text_that_is_not_json_raises_an_error(text: Any) -> None:
    with pytest.raises(InvalidProtocolValueError):
        ProviderResponse.from_json(text)


def test_ten_megabytes_of_data_are_accepted() -> None:
    data = base64.b64encode(bytes(range(256)) * 30_000).decode()
    segment = ContentSegment("image", data=data, mime_type="image/png")
    assert len(repr(segment)) < 300
    assert ContentSegment.from_json(segment.to_json()) == segment
    with pytest.raises(InvalidProtocolValueError) as caught:
        ContentSegment("image", data=data[:-1] + "!")
    assert len(str(caught.value)) < 300


def test_nesting_is_limited() -> None:
    deep: Any = []
    for _ in range(300):
        deep = [deep]
    with pytest.raises(InvalidProtocolValueError, match="nested deeper"):
        ProviderResponse([], deep)
    endless: list[Any] = []
    endless += [endless, endless]
    with pytest.raises(InvalidProtocolValueError, match="nested deeper"):
        ProviderToolCall("f", endless)


@pytest.mark.parametrize(
    "fields",
    [
        {"role": "user", "toolCallId": "1"},
        {"role": "tool"},
        {"role": "user", "toolName": "f"},
        {"role": "nobody"},
        {"role": "user", "segments": [{"type": "tool_call", "toolCall": {"name": "f", "args": {}}}]},
    ],
)
def test_the_role_determines_the_fields_of_a_message(fields: Any) -> None:
    with pytest.raises(InvalidProtocolValueError):
        Message.from_dict({"segments": [], **fields})


def test_an_unreadable_reply_raises_or_becomes_a_text() -> None:
    with pytest.raises(AgentPainException) as caught:
        unreadable("mine", "no JSON")
    assert (caught.value.code, caught.value.provider, caught.value.reason) == ("E51", "mine", "no JSON")
    response = unreadable("mine", "no JSON", "text")
    assert response.text == str(caught.value)
    assert response.metadata["error"] == {"code": "E51", "provider": "mine", "reason": "no JSON"}
    with pytest.raises(InvalidOptionError):
        unreadable("mine", "no JSON", "shrug")
