"""Servers that people run themselves: what they do with a schema, tools, and both."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from kantan_agents import StructuredOutputError
from kantan_agents.testing import OfflineServer, RecordedRequest, Reply, ScriptedToolCall
from tests.models.structured.invoices import DATA, invoice_agent

LOCAL = pytest.mark.parametrize("provider", ["ollama", "lmstudio", "compat"])


def look(word: str) -> str:
    """Look something up."""
    return f"found {word}"


def format_of(request: RecordedRequest) -> dict[str, Any]:
    return request.body.get("response_format") or {}


def tools_of(request: RecordedRequest) -> list[str]:
    return [tool["function"]["name"] for tool in request.body.get("tools") or ()]


def obeying_the_schema(request: RecordedRequest) -> Any:
    """As Ollama and vLLM: a schema is a grammar for the whole reply, so no tool can be called beside it."""
    if format_of(request):
        return json.dumps(DATA)
    has_looked = "found lamp" in json.dumps(request.body)
    return (
        ScriptedToolCall("final_answer", DATA) if has_looked else ScriptedToolCall("look", {"word": "lamp"})
    )


@LOCAL
async def test_a_schema_hides_no_tool(provider: str) -> None:
    looked: list[str] = []

    def look(word: str) -> str:
        """Look something up."""
        looked.append(word)
        return f"found {word}"

    with OfflineServer(obeying_the_schema) as server:
        agent = invoice_agent(server.bundle(api="chat", provider=provider), tools=[look])
        for _ in range(2):
            assert (await agent.run_async("Read it"))["invoice"] == DATA
    assert looked == ["lamp", "lamp"]
    assert not any(map(format_of, server.requests))


def only_text(request: RecordedRequest) -> Any:
    """As a model that calls no tools, on a server with grammars."""
    return json.dumps(DATA) if format_of(request) else "It is a lamp."


@LOCAL
@pytest.mark.parametrize("is_streamed", [False, True], ids=["at once", "streamed"])
async def test_an_answer_without_a_tool_gets_the_grammar_but_the_next_request_offers_tools_again(
    provider: str, is_streamed: bool
) -> None:
    with OfflineServer(only_text) as server:
        for _ in range(2):
            agent = invoice_agent(server.bundle(api="chat", provider=provider), tools=[look])
            if is_streamed:
                async with agent.stream("Read it") as run:
                    _ = [event async for event in run]
                context: Any = run.context
            else:
                context = await agent.run_async("Read it")
            assert context["invoice"] == DATA
    sent = [(tools_of(request), format_of(request).get("type")) for request in server.requests]
    assert sent == 2 * [(["look", "final_answer"], None), (["look"], "json_schema")]


async def test_a_text_that_was_cut_off_in_place_of_a_call_gets_the_grammar_too() -> None:
    def rambling(request: RecordedRequest) -> Any:
        return json.dumps(DATA) if format_of(request) else Reply("It is a lamp, and", is_cut=True)

    with OfflineServer(rambling) as server:
        for _ in range(2):
            agent = invoice_agent(server.bundle(api="chat", provider="compat"), tools=[look])
            assert (await agent.run_async("Read it"))["invoice"] == DATA
    sent = [format_of(request).get("type") for request in server.requests]
    assert sent == 2 * [None, "json_schema"]


async def test_a_schema_that_one_agent_wants_beside_tools_is_not_remembered_for_others() -> None:
    with OfflineServer(obeying_the_schema) as server:
        bundle = server.bundle(api="chat", provider="ollama")
        await invoice_agent(bundle, tools=[look], output_mode="native").run_async("Read it")
        await invoice_agent(bundle, tools=[look]).run_async("Read it")
    assert [format_of(request).get("type") for request in server.requests] == ["json_schema", None, None]


def taking_a_schema_in_json_mode(request: RecordedRequest) -> Any:
    """As llama-cpp-python, whose model calls no tools."""
    wanted = format_of(request)
    return json.dumps(DATA) if wanted.get("type") == "json_object" and "schema" in wanted else "It is a lamp."


async def test_a_schema_in_json_mode_goes_before_the_prompt_alone() -> None:
    with OfflineServer(taking_a_schema_in_json_mode) as server:
        for _ in range(2):
            agent = invoice_agent(server.bundle(api="chat", provider="compat"))
            assert (await agent.run_async("Read it"))["invoice"] == DATA
    asked = [(format_of(request).get("type"), tools_of(request)) for request in server.requests]
    assert asked == [
        ("json_schema", []),
        (None, ["final_answer"]),
        ("json_object", []),
        ("json_object", []),  # remembered
    ]
    assert format_of(server.requests[-1])["schema"]["properties"].keys() == DATA.keys()


async def test_the_prompt_mode_sends_nothing_but_text() -> None:
    with OfflineServer([DATA]) as server:
        bundle = server.bundle(api="chat", provider="compat")
        await invoice_agent(bundle, output_mode="prompt").run_async("Read it")
    (request,) = server.requests
    assert (format_of(request), tools_of(request)) == ({}, [])
    # The words of the specification.
    assert request.body["messages"][0]["content"].startswith(
        "Read the invoice.\n\n---\nIMPORTANT: You MUST respond with ONLY a valid JSON object matching "
        "this schema. No other text, no markdown code blocks, no explanation.\n```json\n{"
    )
    assert request.body["messages"][1]["content"] == "Read it"


EXAMPLE = """Read it

Reply with ONLY a JSON object in this form, with your own values:
{"number": "...", "items": [{"name": "...", "price": 1.5}], "paid": false}"""


@pytest.mark.parametrize("said", ["It is a lamp.", '```json\n{"title": "Invoice", "properties": {}}\n```'])
async def test_a_model_that_ignores_or_copies_the_schema_gets_an_example_instead(said: str) -> None:
    def reply(request: RecordedRequest) -> Any:
        return json.dumps(DATA) if "in this form" in str(request.input[-1]) else said

    with OfflineServer(reply) as server:
        bundle = server.bundle(api="chat", provider="compat")
        for _ in range(2):
            agent = invoice_agent(bundle, output_mode="prompt", output_repairs=0)
            assert (await agent.run_async("Read it"))["invoice"] == DATA
    instructions, question = (message["content"] for message in server.requests[-1].body["messages"])
    assert (instructions, question) == ("Read the invoice.", EXAMPLE)
    assert len(server.requests) == 3  # the second run begins with what worked


IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "auto"}


@pytest.mark.parametrize("content", ["Read it", [{"type": "input_text", "text": "Read it"}, IMAGE]])
async def test_the_example_follows_the_last_message_of_the_user(content: Any) -> None:
    given = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
    given.append({"role": "user", "content": content})
    with OfflineServer(["a lamp", DATA]) as server:
        bundle = server.bundle(provider="compat", api="chat")
        context = await invoice_agent(bundle, output_mode="prompt").run_async(copy.deepcopy(given))
    first, second = (request.body["messages"] for request in server.requests)
    assert second[1:-1] == first[1:-1]
    assert "in this form" in json.dumps(second[-1]["content"])
    assert context["result"].to_input_list()[:3] == given  # neither the history nor a session has it


async def test_a_model_that_can_do_nothing_is_asked_in_every_form_once() -> None:
    with OfflineServer(lambda request: "No.") as server, pytest.raises(StructuredOutputError) as caught:
        await invoice_agent(server.bundle(api="chat", provider="compat"), output_repairs=0).run_async(
            "Read it"
        )
    assert [attempt.mode for attempt in caught.value.attempts] == ["native", "tool", *3 * ["prompt"]]
