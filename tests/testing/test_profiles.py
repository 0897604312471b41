from __future__ import annotations

import json
from typing import Any

import pytest
from openai import AsyncOpenAI, BadRequestError

from kantan_agents.testing import PROFILES, OfflineServer, Profile, Reply, ScriptedToolCall

STRICT = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
ANSWER = {"city": "Paris"}


def client(server: OfflineServer) -> AsyncOpenAI:
    return server.bundle().client


def response_format(schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": True}}


async def chat(server: OfflineServer, **options: Any) -> Any:
    messages: Any = [{"role": "user", "content": "hi"}]
    completion = await client(server).chat.completions.create(model="m", messages=messages, **options)
    return completion.choices[0].message


@pytest.mark.parametrize("name", PROFILES)
async def test_texts_and_tool_calls_of_the_script_are_sent_unchanged(name: str) -> None:
    with OfflineServer(["Hello.", ScriptedToolCall("look", {"a": 1})], profile=name) as server:
        assert (await chat(server)).content == "Hello."
        assert (await chat(server)).tool_calls[0].function.arguments == '{"a": 1}'


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"required": []}, "Missing 'city'"),
        ({"additionalProperties": True}, "additionalProperties"),
        ({"properties": {"city": {"type": "string", "default": "x"}}}, "'default' is not permitted"),
    ],
)
async def test_openai_rejects_schemas_that_violate_its_strict_form(change: Any, problem: str) -> None:
    with OfflineServer([ANSWER], profile="openai") as server:
        create: Any = client(server).responses.create
        form = {"type": "json_schema", "name": "x", "strict": True, "schema": STRICT}
        with pytest.raises(BadRequestError, match=problem):
            await create(model="m", input="hi", text={"format": form | {"schema": STRICT | change}})
        answer = await create(model="m", input="hi", text={"format": form})
    assert json.loads(answer.output_text) == ANSWER


REJECTED = {
    "google": {"tools": [{"type": "function", "function": {"name": "look", "parameters": {}}}]},
    "deepseek": {},
    "plain": {},
}


@pytest.mark.parametrize("name", REJECTED)
async def test_a_rejected_request_uses_up_no_reply(name: str) -> None:
    with OfflineServer([ANSWER], profile=name) as server:
        with pytest.raises(BadRequestError):
            await chat(server, response_format=response_format(STRICT), **REJECTED[name])
        assert "Paris" in (await chat(server)).content


@pytest.mark.parametrize("name", ["anthropic", "ignoring"])
async def test_providers_that_ignore_the_schema_answer_in_prose(name: str) -> None:
    with OfflineServer([ANSWER], profile=name) as server:
        content = (await chat(server, response_format=response_format(STRICT))).content
    assert content != json.dumps(ANSWER)
    assert json.dumps(ANSWER) in content


async def test_claude_adds_text_to_the_call_of_the_final_tool() -> None:
    tool = {"type": "function", "function": {"name": "final_answer", "parameters": STRICT}}
    with OfflineServer([ANSWER], profile="anthropic") as server:
        message = await chat(server, tools=[tool])
    assert message.content == "I'll give the final answer now."
    assert json.loads(message.tool_calls[0].function.arguments) == ANSWER


async def test_a_custom_profile() -> None:
    shouting = Profile("shouting", chat=str.upper)
    with OfflineServer([ANSWER], profile=shouting) as server:
        assert (await chat(server)).content == '{"CITY": "PARIS"}'
        assert server.bundle().provider == "compat"


def test_an_unknown_profile_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="no profile 'claude'; there are openai, google, anthropic"):
        OfflineServer(profile="claude")


async def test_refusals_and_cut_replies_have_the_form_of_each_api() -> None:
    with OfflineServer([Reply(refusal="No."), Reply("cut", is_cut=True)] * 2) as server:
        bundle = server.bundle()
        refused = await bundle.client.responses.create(model="m", input="hi")
        cut = await bundle.client.responses.create(model="m", input="hi")
        assert (await chat(server)).refusal == "No."
        completion = await bundle.client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "hi"}]
        )
    message: Any = refused.output[0]
    part = message.content[0]
    assert part.type == "refusal"
    assert cut.status == "incomplete"
    assert cut.incomplete_details is not None
    assert cut.incomplete_details.reason == "max_output_tokens"
    assert completion.choices[0].finish_reason == "length"


def test_an_unknown_api_is_an_error_that_names_the_known_ones() -> None:
    with OfflineServer() as server, pytest.raises(ValueError, match='"responses" or "chat", not \'grpc\''):
        server.bundle(api="grpc")
