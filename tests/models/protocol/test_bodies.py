"""Every translation of JSON returns protocol values, or an error that says where the JSON is wrong."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import ProviderResponse
from kantan_agents.errors import InvalidProtocolValueError, UntranslatableError
from kantan_agents.models.protocol import Message, ToolSpec, translate
from kantan_agents.testing.strategies import json_values
from tests.models.protocol.wire_server import WIRE, recorded

Read = Callable[[Any], Any]
RESPONSES: dict[str, Read] = {
    "openai_chat": translate.response_from_openai_chat,
    "openai_responses": translate.response_from_openai_responses,
    "anthropic": translate.response_from_anthropic,
    "gemini": translate.response_from_gemini,
}
LISTS: dict[str, Read] = {
    name: getattr(translate, name)
    for name in translate.__all__
    if name.startswith(("messages_from_", "tools_from_"))
}
READERS = {**RESPONSES, **LISTS, "schema": translate.schema_from_gemini}
ANSWERS = {
    "openai_chat": ["chat_tool_calls", "chat_refusal", "chat_audio"],
    "openai_responses": ["openai_responses"],
    "anthropic": ["anthropic_tool_use", "anthropic_citations"],
    "gemini": ["gemini_function_calls", "gemini_image", "gemini_blocked"],
}
BODIES = {path.stem: recorded(path.stem) for path in sorted(WIRE.glob("*.json"))}
ERROR = {"message": "The model is overloaded.", "type": "overloaded_error", "code": 529}
DEEP: Any = []
for _ in range(2_000):
    DEEP = [DEEP]
DEEP_OBJECT: Any = {}
for _ in range(2_000):
    DEEP_OBJECT = {"type": DEEP_OBJECT}
WRONG: list[Any] = [
    None,
    True,
    0,
    1.5,
    "x",
    b"x",
    [],
    {},
    ["x"],
    [None],
    {"a": 1},
    {"role": []},
    [{"type": []}],
]
EXTREME = [DEEP, DEEP_OBJECT, float("nan"), 10**5000, "\ud800", {1: 2}, object(), {"a": {1, 2}}]


def every(reads: dict[str, Read]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("read", reads.values(), ids=reads.keys())


@pytest.mark.parametrize("api", RESPONSES)
@pytest.mark.parametrize(
    "body", [None, "text", [], {}, {"error": ERROR}, {"type": "error", "error": ERROR}, 3]
)
def test_a_body_that_is_not_an_answer_is_e50(api: str, body: Any) -> None:
    with pytest.raises(InvalidProtocolValueError) as caught:
        RESPONSES[api](body)
    assert caught.value.code == "E50"
    if isinstance(body, dict) and body:
        assert "error: the API reported an error: The model is overloaded." in caught.value.problems


@pytest.mark.parametrize(
    ("api", "other"), [(api, other) for api in ANSWERS for other in ANSWERS if other != api]
)
def test_the_answer_of_another_api_is_e50(api: str, other: str) -> None:
    for name in ANSWERS[other]:
        with pytest.raises(InvalidProtocolValueError):
            RESPONSES[api](recorded(name))


@pytest.mark.parametrize(
    ("api", "body"),
    [
        ("openai_chat", {"choices": [{"message": {}}]}),
        ("openai_chat", {"choices": []}),
        ("openai_responses", {"output": []}),
        ("anthropic", {"content": []}),
        ("gemini", {"candidates": [{}]}),
        ("gemini", {"candidates": []}),
    ],
)
def test_an_empty_list_alone_is_not_an_answer(api: str, body: Any) -> None:
    with pytest.raises(InvalidProtocolValueError):
        RESPONSES[api](body)


@pytest.mark.parametrize(
    ("api", "body"),
    [
        ("openai_chat", {"choices": [{"message": {"role": "assistant", "content": None}}]}),
        ("openai_responses", {"object": "response", "status": "incomplete", "error": None, "output": []}),
        ("anthropic", {"type": "message", "role": "assistant", "content": []}),
        ("gemini", {"candidates": [{"finishReason": "SAFETY"}]}),
    ],
)
def test_an_answer_without_content_is_an_empty_answer(api: str, body: Any) -> None:
    assert RESPONSES[api](body).segments == ()


def test_a_failed_response_without_output_is_the_error_that_it_names() -> None:
    body = {"object": "response", "status": "failed", "error": ERROR, "output": []}
    with pytest.raises(InvalidProtocolValueError, match="the API reported an error"):
        RESPONSES["openai_responses"](body)


@every(READERS)
def test_every_wrong_value_is_an_error_or_empty_but_never_a_crash(read: Read) -> None:
    for value in [*WRONG, *EXTREME]:
        try:
            found = read(copy.copy(value))
        except (InvalidProtocolValueError, UntranslatableError):
            pass
        else:
            assert not isinstance(found, ProviderResponse)
            assert isinstance(found, dict) or all(isinstance(one, (Message, ToolSpec)) for one in found)


@every(LISTS)
def test_lists_are_returned_as_tuples_and_anything_else_is_e50(read: Read) -> None:
    for value in (None, 3, b"x"):
        with pytest.raises(InvalidProtocolValueError, match="must be "):
            read(value)
    is_body = read in (translate.messages_from_anthropic, translate.messages_from_gemini)
    empty: Any = {"messages": [], "contents": []} if is_body else []
    assert read(empty) == ()


@every(READERS)
@given(json_values())
def test_arbitrary_json_is_read_or_an_error(read: Read, value: Any) -> None:
    check(read, value)


def check(read: Read, value: Any) -> None:
    with contextlib.suppress(InvalidProtocolValueError, UntranslatableError):
        assert isinstance(read(value), (ProviderResponse, tuple, dict))


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield from places(part, (*path, key))


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    parts = dict(value) if isinstance(value, dict) else list(value)
    parts[path[0]] = changed(parts[path[0]], path[1:], new)
    return parts


PLACES = {name: list(places(body)) for name, body in BODIES.items()}


@every(READERS)
@given(st.data())
def test_a_real_body_with_a_wrong_value_somewhere_is_read_or_an_error(
    read: Read, data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(sorted(BODIES)))
    body = BODIES[name]
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(PLACES[name]))
        new = data.draw(st.sampled_from([*WRONG, *EXTREME]) | json_values(max_leaves=3))
        try:
            body = changed(body, path, new)
        except (LookupError, TypeError, ValueError):  # the first change has removed this place
            continue
    check(read, body)
    for part in body.values() if isinstance(body, dict) else body if isinstance(body, list) else ():
        check(read, part)


def test_a_wrong_part_of_a_message_is_named_by_its_path() -> None:
    items: list[Any] = [
        {"role": "user", "content": "hi"},
        {"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "image", "data": "?"}]},
    ]
    with pytest.raises(InvalidProtocolValueError) as caught:
        translate.messages_from_openai_responses(items)
    assert caught.value.problems == ("input[1].content[1].data: is neither base64 nor a URL",)
    with pytest.raises(InvalidProtocolValueError) as caught:
        translate.tools_from_openai_responses([{"type": "function", "name": "a", "parameters": []}])
    assert caught.value.problems == ("tools[0].parameters: must be an object, not list",)
    with pytest.raises(InvalidProtocolValueError) as caught:
        translate.response_from_anthropic({"content": [{"type": "text", "text": "\ud800"}]})
    assert caught.value.problems[0].startswith("content[0].text: ")
