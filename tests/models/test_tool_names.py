"""Names of tools that OpenAI and Anthropic refuse are sent in another way, and read back."""

from __future__ import annotations

import re
from typing import Any

import pytest
from agents import FunctionTool, ModelSettings, function_tool
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import Agent
from kantan_agents.models.tool_names import SentNames
from kantan_agents.testing import OfflineServer, ScriptedToolCall

ACCEPTED = re.compile(r"[a-zA-Z0-9_-]{1,64}")
ODD = ["dots.in/name", "with space", "日本語", "x" * 90, "dots_in_name", "a:b"]


def tool(name: str, called: list[str]) -> FunctionTool:
    async def invoke(_context: Any, _arguments: str) -> str:
        called.append(name)
        return "ok"

    return FunctionTool(name, "d", {"type": "object", "properties": {}}, invoke, strict_json_schema=False)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("api", ["responses", "chat"])
@pytest.mark.parametrize("name", ODD)
async def test_a_tool_of_any_name_is_called_through_openai(name: str, api: str, streamed: bool) -> None:
    called: list[str] = []

    def reply(request: Any) -> Any:
        names = [(one.get("function") or one)["name"] for one in request.body["tools"]]
        return "done" if called else ScriptedToolCall(names[ODD.index(name)], {})

    with OfflineServer(reply, profile="openai") as server:
        tools = [tool(one, called) for one in ODD]
        agent = Agent("a", "x", model=server.bundle(api=api), tools=tools)
        if streamed:
            async with agent.stream("q") as run:
                events = [event async for event in run]
                context = run.context
            assert name in [getattr(event, "tool", None) for event in events]
        else:
            context = await agent.run_async("q")
        sent = [(one.get("function") or one)["name"] for one in server.requests[0].body["tools"]]
    assert called == [name]
    assert [item.raw_item.name for item in context["result"].new_items if item.type == "tool_call_item"] == [
        name
    ]
    assert all(map(ACCEPTED.fullmatch, sent))
    assert len(set(sent)) == len(ODD)
    assert sent[ODD.index("dots_in_name")] == "dots_in_name"


async def test_the_rules_know_a_tool_by_its_own_name() -> None:
    called: list[str] = []
    with OfflineServer([ScriptedToolCall("dots_in_name", {}), "done"], profile="openai") as server:
        agent = Agent("a", "x", model=server.bundle(), tools=[tool("dots.in/name", called)])
        await agent.run_async("q", {"tool_rules": {"deny": ["dots.in/name"]}})
    assert called == []
    assert "tools" not in server.requests[0].body or server.requests[0].body["tools"] == []


async def test_a_chosen_tool_and_an_earlier_call_have_the_names_that_are_sent() -> None:
    called: list[str] = []
    earlier: list[Any] = [
        {"type": "function_call", "call_id": "c", "name": "gone.tool", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "x"},
        {"role": "user", "content": "go on"},
    ]
    with OfflineServer([ScriptedToolCall("a_b", {}), "done"], profile="openai") as server:
        settings = ModelSettings(tool_choice="a.b")
        agent = Agent("a", "x", model=server.bundle(), tools=[tool("a.b", called)], model_settings=settings)
        await agent.run_async(earlier)
    first, second = (request.body for request in server.requests)
    assert first["tool_choice"] == {"type": "function", "name": "a_b"}
    assert first["input"][0]["name"] == "gone_tool"
    assert [item["name"] for item in second["input"] if item.get("type") == "function_call"] == [
        "gone_tool",
        "a_b",
    ]
    assert called == ["a.b"]
    assert settings.tool_choice == "a.b"


async def test_an_earlier_call_never_gets_the_name_of_another_tool() -> None:
    earlier: list[Any] = [
        {"type": "function_call", "call_id": "c", "name": "a.b", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "x"},
        {"role": "user", "content": "go on"},
    ]
    with OfflineServer(["done", "done"], profile="openai") as server:
        for name in ("a_b", "a/b"):
            await Agent("a", "x", model=server.bundle(), tools=[tool(name, [])]).run_async(earlier)
    for request in server.requests:
        assert request.body["tools"][0]["name"] == "a_b"
        assert re.fullmatch("a_b_[0-9a-f]{8}", request.body["input"][0]["name"])


@pytest.mark.parametrize(
    ("api", "name", "message"),
    [
        ("responses", "a.b", r"Invalid 'tools\[0\].name': string does not match pattern"),
        ("responses", "x" * 65, r"Invalid 'tools\[0\].name': string too long.* maximum length 64"),
        ("chat", "a b", r"Invalid 'tools\[0\].function.name': string does not match pattern"),
    ],
)
async def test_the_offline_server_refuses_what_openai_refuses(api: str, name: str, message: str) -> None:
    body = {"tools": [{"type": "function", "name": name, "function": {"name": name}}]}
    if api == "responses":
        del body["tools"][0]["function"]
    with OfflineServer(["ok"], profile="openai") as server:
        client = server.bundle(api=api).client
        with pytest.raises(Exception, match=message):
            if api == "responses":
                await client.responses.create(model="m", input="q", extra_body=body)
            else:
                messages: Any = [{"role": "user", "content": "q"}]
                await client.chat.completions.create(model="m", messages=messages, extra_body=body)


@given(st.lists(st.text(min_size=1, max_size=100), unique=True, max_size=8))
def test_names_are_accepted_unique_and_read_back(names: list[str]) -> None:
    tools = [tool(name, []) for name in names]
    sent = SentNames(tools, [])
    shown = [one.name for one in sent.tools(tools)]
    assert all(map(ACCEPTED.fullmatch, shown))
    assert len(set(shown)) == len(names)
    calls = [{"type": "function_call", "name": name} for name in shown]
    assert [sent.own(call)["name"] for call in calls] == names
    assert [one.name for one in tools] == names


def test_usual_names_change_nothing() -> None:
    @function_tool
    def look() -> str:
        """Look."""
        return ""

    sent, tools, items = SentNames([look], []), [look], [{"type": "function_call", "name": "look"}]
    assert sent.tools(tools) is tools
    assert sent.items(items) is items
