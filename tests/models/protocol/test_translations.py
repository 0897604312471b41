"""Translations of recorded bodies of the APIs, and the losses and problems that they report."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import ContentSegment, ProviderResponse
from kantan_agents.errors import InvalidProtocolValueError, UntranslatableError
from kantan_agents.models.protocol import Message, ProviderToolCall, ToolSpec
from kantan_agents.models.protocol.translate import anthropic, gemini, openai_chat
from tests.models.protocol.wire_server import recorded


def without_nulls(data: Any) -> Any:
    """Return JSON data without fields that are null or empty lists."""
    if isinstance(data, dict):
        return {
            name: without_nulls(value) for name, value in data.items() if value is not None and value != []
        }
    return [without_nulls(value) for value in data] if isinstance(data, list) else data


RESPONSES = [
    ("chat_tool_calls", openai_chat.response_from_openai_chat, openai_chat.response_to_openai_chat),
    ("chat_refusal", openai_chat.response_from_openai_chat, openai_chat.response_to_openai_chat),
    ("chat_audio", openai_chat.response_from_openai_chat, openai_chat.response_to_openai_chat),
    ("anthropic_tool_use", anthropic.response_from_anthropic, anthropic.response_to_anthropic),
    ("anthropic_citations", anthropic.response_from_anthropic, anthropic.response_to_anthropic),
    ("gemini_function_calls", gemini.response_from_gemini, gemini.response_to_gemini),
    ("gemini_image", gemini.response_from_gemini, gemini.response_to_gemini),
]


@pytest.mark.parametrize(("name", "read", "write"), RESPONSES, ids=lambda value: str(value)[:30])
def test_a_recorded_response_survives_a_round_trip(name: str, read: Any, write: Any) -> None:
    body = recorded(name)
    response = read(body)
    again = read(json.loads(json.dumps(write(response))))
    calls_without_id = name == "gemini_function_calls"
    if not calls_without_id:
        expected, got = without_nulls(body), without_nulls(write(response))
        for place in (expected, got):
            for choice in place.get("choices", ()):
                for call in choice["message"].get("tool_calls", ()):
                    call["function"]["arguments"] = json.loads(call["function"]["arguments"] or "{}")
        assert got == expected
    assert again == response


def test_a_chat_completion_is_read() -> None:
    response = openai_chat.response_from_openai_chat(recorded("chat_tool_calls"))
    assert response.text == "Looking."
    assert [(call.name, call.args, call.id) for call in response.tool_calls] == [
        ("get_weather", {"location": "Paris"}, "call_12xyz"),
        ("get_time", {}, "call_67abc"),
    ]
    assert response.metadata["usage"] == {
        "input_tokens": 82,
        "output_tokens": 17,
        "total_tokens": 99,
        "cached_tokens": 64,
        "reasoning_tokens": 8,
    }


def test_a_response_of_claude_is_read() -> None:
    response = anthropic.response_from_anthropic(recorded("anthropic_tool_use"))
    text_segment, called = response.segments
    assert text_segment.text == "I'll check the current weather."
    assert [block["type"] for block in text_segment.extra["anthropic"]["before"]] == [
        "thinking",
        "redacted_thinking",
    ]
    assert called.tool_call == ProviderToolCall(
        "get_weather", {"location": "San Francisco, CA", "unit": "celsius"}, "toolu_01A09q90qw90lq917835lq9"
    )
    assert response.metadata["usage"]["input_tokens"] == 21 + 188 + 2051
    assert response.metadata["finish_reason"] == "tool_use"


def test_a_response_of_gemini_is_read() -> None:
    response = gemini.response_from_gemini(recorded("gemini_function_calls"))
    text_segment, first, second = response.segments
    assert text_segment.extra["gemini"]["before"] == [{"text": "Thinking about it.", "thought": True}]
    assert first.extra == {"gemini": {"fields": {"thoughtSignature": "CrICAdHtim827fQ="}}}
    assert first.tool_call is not None
    assert first.tool_call.id == "p1k4qgXs"
    assert second.tool_call is not None
    assert len(second.tool_call.id) == 36, "a call without an id gets a UUID"
    assert response.metadata["usage"]["output_tokens"] == 26 + 183


def test_a_blocked_prompt_is_an_empty_response_with_the_reason() -> None:
    response = gemini.response_from_gemini(recorded("gemini_blocked"))
    assert response.segments == ()
    assert response.metadata["finish_reason"] == "PROHIBITED_CONTENT"


@pytest.mark.parametrize(
    ("name", "read", "write"),
    [
        ("chat_request", openai_chat.messages_from_openai_chat, openai_chat.messages_to_openai_chat),
        ("anthropic_request", anthropic.messages_from_anthropic, anthropic.messages_to_anthropic),
        ("gemini_request", gemini.messages_from_gemini, gemini.messages_to_gemini),
    ],
    ids=["chat", "anthropic", "gemini"],
)
def test_a_recorded_conversation_survives_a_round_trip(name: str, read: Any, write: Any) -> None:
    body = recorded(name)
    messages = read(body)
    assert write(messages) == body
    assert [message.role for message in messages][:2] == ["system", "user"]
    assert {message.tool_name for message in messages if message.role == "tool"} == {"look"}


def test_geminis_schemas_are_read_as_json_schema() -> None:
    weather, now = gemini.tools_from_gemini(recorded("gemini_tools"))
    assert weather.parameters["properties"]["days"] == {"type": ["integer", "null"], "format": "int32"}
    assert weather.parameters["properties"]["hours"]["maxItems"] == 24
    assert now.parameters == {"type": "object", "properties": {}}
    again = gemini.tools_to_gemini([weather], schema_field="parameters")
    assert again[0]["functionDeclarations"][0]["parameters"]["properties"]["days"] == {
        "type": "INTEGER",
        "nullable": True,
        "format": "int32",
    }


def losses_of(write: Any, *args: Any) -> list[str]:
    with pytest.raises(UntranslatableError) as caught:
        write(*args)
    assert caught.value.code == "E52"
    return list(caught.value.problems)


def test_all_losses_are_reported_together() -> None:
    response = ProviderResponse(
        [
            ContentSegment.of_call("a.b", "no object"),
            ContentSegment.of_text("late"),
            ContentSegment("ui", ui={"x": 1}),
            ContentSegment("audio", data="AAAA", mime_type="audio/wav", extra={"loud": True}),
        ],
        {"mood": "good"},
    )
    chat = losses_of(openai_chat.response_to_openai_chat, response)
    assert [problem.partition(":")[0] for problem in chat] == [
        "metadata.mood",
        "segments[0].toolCall.name",
        "segments[1]",
        "segments[2]",
        "segments[3].mimeType",
        "segments[3].loud",
    ]
    assert [
        problem.partition(":")[0] for problem in losses_of(anthropic.response_to_anthropic, response)
    ] == [
        "metadata.mood",
        "segments[0].toolCall.args",
        "segments[0].toolCall.name",
        "segments[2]",
        "segments[3].loud",
        "segments[3]",
    ]
    assert [problem.partition(":")[0] for problem in losses_of(gemini.response_to_gemini, response)] == [
        "metadata.mood",
        "segments[0].toolCall.args",
        "segments[2]",
        "segments[3].loud",
    ]


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (openai_chat.tools_to_openai_chat, "fs.read"),
        (openai_chat.tools_to_openai_chat, "x" * 65),
        (anthropic.tools_to_anthropic, "fs.read"),
        (anthropic.tools_to_anthropic, "x" * 129),
        (gemini.tools_to_gemini, "1st"),
        (gemini.tools_to_gemini, "x" * 65),
    ],
)
def test_a_tool_name_that_the_format_does_not_allow_is_a_loss(write: Any, name: str) -> None:
    (problem,) = losses_of(write, [ToolSpec(name)])
    assert problem.startswith("tools[0].name: ")


def test_a_media_type_that_the_format_does_not_support_is_a_loss() -> None:
    tiff = Message("user", (ContentSegment("image", data="AAAA", mime_type="image/tiff"),))
    assert losses_of(anthropic.messages_to_anthropic, [tiff])[0].startswith(
        "messages[0].segments[0].mimeType"
    )
    film = Message("user", (ContentSegment("video", data="AAAA", mime_type="video/mp4"),))
    assert losses_of(openai_chat.messages_to_openai_chat, [film]) == [
        "messages[0].segments[0]: a message of the role user cannot hold video"
    ]
    assert gemini.messages_to_gemini([film])["contents"][0]["parts"] == [
        {"inlineData": {"mimeType": "video/mp4", "data": "AAAA"}}
    ]


def test_instructions_come_first() -> None:
    messages = [Message("user", (ContentSegment.of_text("hi"),))]
    assert openai_chat.messages_to_openai_chat(messages, "Be kind.")[0] == {
        "role": "system",
        "content": "Be kind.",
    }
    assert anthropic.messages_to_anthropic(messages, "Be kind.")["system"] == "Be kind."
    found = gemini.messages_to_gemini(messages, "Be kind.")["systemInstruction"]
    assert found == {"parts": [{"text": "Be kind."}]}
    late = [*messages, Message("system", (ContentSegment.of_text("now"),))]
    assert losses_of(anthropic.messages_to_anthropic, late)[0].startswith("messages[1].role")


def test_the_problems_of_an_invalid_response_have_paths() -> None:
    with pytest.raises(InvalidProtocolValueError) as caught:
        anthropic.response_from_anthropic({"content": [{"type": "tool_use", "input": {}}, 5], "model": 3})
    assert list(caught.value.problems) == [
        "content[1]: must be an object, not int",
        "content[0].name: is missing",
        "model: must be a text, not int",
    ]
    with pytest.raises(InvalidProtocolValueError, match="candidates: must be one, not 2"):
        gemini.response_from_gemini({"candidates": [{}, {}]})
    with pytest.raises(InvalidProtocolValueError, match="must be an object, not list"):
        openai_chat.response_from_openai_chat([])


def test_arguments_that_are_not_json_stay_unchanged() -> None:
    body = recorded("chat_tool_calls")
    body["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] = '{"x": NaN'
    assert openai_chat.response_from_openai_chat(body).tool_calls[0].args == '{"x": NaN'


SCHEMA = {
    "type": "object",
    "$defs": {"Kind": {"type": "string", "enum": ["a", "b"]}, "Old": {"$ref": "#/$defs/Kind"}},
    "properties": {
        "kind": {"$ref": "#/$defs/Old", "description": "Which"},
        "when": {"type": "string", "format": "date-time"},
        "id": {"type": "string", "format": "uuid"},
        "n": {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10},
        "maybe": {"anyOf": [{"type": "number", "minimum": 1}, {"type": "null"}]},
        "either": {"type": ["string", "integer", "null"]},
        "one": {"const": "x"},
        "list": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2},
    },
    "required": ["kind"],
    "additionalProperties": False,
}


def test_a_json_schema_in_geminis_subset() -> None:
    assert gemini.schema_to_gemini(SCHEMA) == {
        "type": "OBJECT",
        "properties": {
            "kind": {"type": "STRING", "enum": ["a", "b"], "description": "Which"},
            "when": {"type": "STRING", "format": "date-time"},
            "id": {"type": "STRING", "description": '(format: "uuid")'},
            "n": {"type": "INTEGER", "minimum": 1, "maximum": 9},
            "maybe": {"type": "NUMBER", "minimum": 1, "nullable": True},
            "either": {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}], "nullable": True},
            "one": {"type": "STRING", "enum": ["x"]},
            "list": {"type": "ARRAY", "items": {"type": "BOOLEAN"}, "maxItems": 2},
        },
        "required": ["kind"],
    }


INSTANCES = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from(["a", "c", 1]),
        "n": st.sampled_from([0, 1, 9, 10, "x"]),
        "maybe": st.sampled_from([None, 0, 1.5, "x"]),
        "either": st.sampled_from([None, "x", 3, 2.5, []]),
        "one": st.sampled_from(["x", "y"]),
        "list": st.lists(st.booleans(), max_size=3),
    },
)


@given(instance=INSTANCES)
def test_the_subset_accepts_the_same_values_as_the_schema(instance: Any) -> None:
    back = gemini.schema_from_gemini(gemini.schema_to_gemini(SCHEMA))
    assert jsonschema_rs.is_valid(back, instance) == jsonschema_rs.is_valid(SCHEMA, instance)


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"type": "object", "properties": {"x": {"$ref": "#/$defs/no"}}}, "properties.x.$ref"),
        (
            {"$defs": {"T": {"type": "array", "items": {"$ref": "#/$defs/T"}}}, "$ref": "#/$defs/T"},
            "items.$ref",
        ),
        ({"type": "object", "properties": {"x": {"$ref": "#"}}}, "properties.x.$ref"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "additionalProperties"),
        ({"type": "object", "patternProperties": {}}, "patternProperties"),
        ({"type": "number", "exclusiveMinimum": 0}, "exclusiveMinimum"),
        ({"type": "integer", "multipleOf": 2}, "multipleOf"),
        ({"type": "integer", "enum": [1, 2]}, "enum"),
        ({"type": "array"}, "items"),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, "oneOf"),
        ({"allOf": [{"type": "string"}, {"minLength": 1}]}, "allOf"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}], "minimum": 1}, "minimum"),
        ({"type": "string", "not": {"const": "x"}}, "not"),
        ({"type": "object", "properties": {"x": True}}, "properties.x"),
        ({"type": "object", "properties": {"x": {}}}, "properties.x"),
        ({"type": "banana"}, "type"),
    ],
)
def test_keywords_that_the_subset_cannot_express_are_losses_with_paths(
    schema: dict[str, Any], path: str
) -> None:
    assert path in [problem.partition(":")[0] for problem in losses_of(gemini.schema_to_gemini, schema)]


def test_a_schema_that_grows_with_every_reference_gives_one_error() -> None:
    layers: dict[str, Any] = {"L0": {"type": "string"}}
    for level in range(1, 40):
        part = {"$ref": f"#/$defs/L{level - 1}"}
        layers[f"L{level}"] = {"type": "object", "properties": {"a": part, "b": part}}
    problems = losses_of(gemini.schema_to_gemini, {"$defs": layers, "$ref": "#/$defs/L39"})
    assert len(problems) == 1
    assert "grows beyond 5000 parts" in problems[0]


def test_an_output_schema_for_claude() -> None:
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1, "description": "How many"},
            "s": {"type": "string"},
        },
        "required": ["n"],
    }
    assert anthropic.output_schema_to_anthropic(schema) == {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "description": "How many (minimum: 1)"},
            "s": {"type": "string"},
        },
        "required": ["n"],
        "additionalProperties": False,
    }
    free = {"type": "object", "additionalProperties": {"type": "string"}}
    assert losses_of(anthropic.output_schema_to_anthropic, free)[0].startswith("additionalProperties")
    loop = {"$defs": {"T": {"type": "array", "items": {"$ref": "#/$defs/T"}}}, "$ref": "#/$defs/T"}
    assert "refers to itself" in losses_of(anthropic.output_schema_to_anthropic, loop)[0]


def text_with_extra(owner: str, **parts: Any) -> ContentSegment:
    return ContentSegment("text", text="x", extra={owner: parts})


@pytest.mark.parametrize(
    ("segment", "path"),
    [
        (ContentSegment("text", text="x", extra={"anthropic": "odd"}), "segments[0].extra.anthropic"),
        (text_with_extra("anthropic", odd=1), "segments[0].extra.anthropic.odd"),
        (text_with_extra("anthropic", fields=[]), "segments[0].extra.anthropic.fields"),
        (text_with_extra("anthropic", fields={"text": "y"}), "segments[0].extra.anthropic.fields.text"),
        (text_with_extra("anthropic", before=[1]), "segments[0].extra.anthropic.before"),
        (text_with_extra("anthropic", after="x"), "segments[0].extra.anthropic.after"),
    ],
)
def test_extra_data_for_a_format_are_checked_before_they_are_written(
    segment: ContentSegment, path: str
) -> None:
    (problem,) = losses_of(anthropic.response_to_anthropic, ProviderResponse([segment]))
    assert problem.startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("metadata", "path"),
    [
        ("text", "metadata"),
        ({"id": 3}, "metadata.id"),
        ({"usage": {"input_tokens": -1}}, "metadata.usage.input_tokens"),
        ({"usage": {"input_tokens": "3"}}, "metadata.usage.input_tokens"),
        ({"usage": {"mood": 3}}, "metadata.usage.mood"),
    ],
)
def test_metadata_that_a_format_cannot_hold_are_losses(metadata: Any, path: str) -> None:
    response = ProviderResponse([ContentSegment.of_text("x")], metadata)
    for write in (
        openai_chat.response_to_openai_chat,
        anthropic.response_to_anthropic,
        gemini.response_to_gemini,
    ):
        assert path in [problem.partition(":")[0] for problem in losses_of(write, response)]


def test_inconsistent_counts_are_losses() -> None:
    few = {"usage": {"input_tokens": 3, "cached_tokens": 5}}
    segments = [ContentSegment.of_text("x")]
    assert (
        "metadata.usage.input_tokens"
        in losses_of(anthropic.response_to_anthropic, ProviderResponse(segments, few))[0]
    )
    few = {"usage": {"output_tokens": 3, "reasoning_tokens": 5}}
    assert (
        "metadata.usage.output_tokens"
        in losses_of(gemini.response_to_gemini, ProviderResponse(segments, few))[0]
    )


@pytest.mark.parametrize(
    ("read", "data", "problem"),
    [
        (openai_chat.messages_from_openai_chat, [{"role": "x"}], "messages[0].role: must be one of"),
        (
            openai_chat.messages_from_openai_chat,
            [{"role": "tool", "content": "x"}],
            "messages[0].tool_call_id",
        ),
        (
            openai_chat.messages_from_openai_chat,
            [{"role": "user", "content": 3}],
            "messages[0].content: must",
        ),
        (
            openai_chat.messages_from_openai_chat,
            [{"role": "assistant", "tool_calls": [{"type": "custom"}]}],
            "messages[0].tool_calls[0].type: must be function",
        ),
        (openai_chat.tools_from_openai_chat, [{"type": "x"}], "tools[0].function: is missing"),
        (anthropic.messages_from_anthropic, {"messages": [{"role": "x"}]}, "messages[0].role"),
        (anthropic.messages_from_anthropic, {"messages": [{"role": "user"}]}, "messages[0].content"),
        (anthropic.tools_from_anthropic, [{"type": "web_search_20250305"}], "tools[0].type"),
        (anthropic.tools_from_anthropic, [{"name": "x"}], "tools[0].input_schema: is missing"),
        (gemini.messages_from_gemini, {"contents": [{"role": "x", "parts": []}]}, "contents[0].role"),
        (gemini.tools_from_gemini, [{"googleSearch": {}}], "tools[0].googleSearch"),
        (
            gemini.messages_from_gemini,
            {"contents": [{"parts": [{"inlineData": {"mimeType": "image/png", "data": "?"}}]}]},
            "contents[0].parts[0].data: is neither base64 nor a URL",
        ),
    ],
)
def test_a_problem_has_a_path(read: Any, data: Any, problem: str) -> None:
    with pytest.raises(InvalidProtocolValueError) as caught:
        read(data)
    assert any(found.startswith(problem) for found in caught.value.problems), caught.value.problems


def test_results_and_calls_without_ids_are_matched() -> None:
    call = {"functionCall": {"name": "look", "args": {}}}
    answers = [{"functionResponse": {"name": "look", "response": response}} for response in ({"a": 1}, {})]
    contents = [{"role": "model", "parts": [call, call]}, {"role": "function", "parts": answers}]
    asked, first, second = (
        gemini.messages_from_gemini({"contents": contents[:1]})[0],
        *(gemini.messages_from_gemini({"contents": contents})[1:]),
    )
    assert len(asked.segments) == 2
    assert first.tool_call_id != second.tool_call_id
    assert (first.text, second.text) == ('{"a": 1}', "")


def test_an_output_schema_keeps_supported_keywords_and_describes_the_others() -> None:
    schema = {
        "$defs": {"A": {"type": "object", "properties": {}}},
        "type": "object",
        "properties": {
            "one": {
                "oneOf": [{"$ref": "#/$defs/A"}, {"type": "null"}],
                "discriminator": {"propertyName": "x"},
            },
            "many": {"type": "array", "items": {"type": "string", "format": "color"}, "minItems": 3},
            "day": {"type": "string", "format": "date"},
        },
    }
    properties = anthropic.output_schema_to_anthropic(schema)["properties"]
    assert properties["one"] == {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]}
    assert properties["many"]["description"] == "(minItems: 3)"
    assert properties["many"]["items"]["description"] == '(format: "color")'
    assert properties["day"] == {"type": "string", "format": "date"}
    assert losses_of(anthropic.output_schema_to_anthropic, {"properties": {"x": True}})[0].startswith(
        "properties.x:"
    )
    assert losses_of(anthropic.output_schema_to_anthropic, {"type": "object", "if": {}})[0].startswith("if:")


@pytest.mark.parametrize("blank", ["", " ", "\n\n", "\u3000\t"])
def test_text_without_a_visible_character_is_left_out_for_claude(blank: str) -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "S"}
    text_segment = ContentSegment("text", text=blank, extra={"anthropic": {"before": [thinking]}})
    messages = [
        Message("user", (ContentSegment.of_text("hi"), ContentSegment.of_text(blank))),
        Message("assistant", (text_segment, ContentSegment.of_call("look", {}, "c1"))),
        Message("tool", (ContentSegment.of_text(blank),), "c1"),
        Message("user", (ContentSegment.of_text(blank),)),
    ]
    assert anthropic.messages_to_anthropic(messages, blank) == {
        "messages": [
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": [thinking, {"type": "tool_use", "id": "c1", "name": "look", "input": {}}],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1"}]},
        ]
    }


def test_unknown_fields_of_a_message_with_only_results_survive() -> None:
    call = {"type": "tool_use", "id": "1", "name": "f", "input": {}}
    results = [{"type": "tool_result", "tool_use_id": "1", "content": text} for text in "ab"]
    conversation: dict[str, Any] = {
        "messages": [
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": results, "meta": 1},
            {"role": "user", "content": results[:1], "meta": 2},
        ]
    }
    assert anthropic.messages_to_anthropic(anthropic.messages_from_anthropic(conversation)) == conversation
    part = {"functionResponse": {"id": "1", "name": "f", "response": {"result": "a"}}}
    conversation = {
        "contents": [
            {"role": "model", "parts": [{"functionCall": {"id": "1", "name": "f", "args": {}}}]},
            {"role": "user", "parts": [part, part], "meta": 1},
            {"role": "user", "parts": [part], "meta": 2},
        ]
    }
    assert gemini.messages_to_gemini(gemini.messages_from_gemini(conversation)) == conversation


def test_media_at_a_url_in_a_tool_result_are_a_loss_for_gemini() -> None:
    image = ContentSegment("image", data="https://example.com/a.png")
    result = Message("tool", (image,), "1", "look")
    assert losses_of(gemini.messages_to_gemini, [result])[0].startswith(
        "messages[0].segments[0].data: is a URL"
    )
