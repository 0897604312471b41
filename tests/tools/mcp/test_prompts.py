"""Prompts of real servers are reachable: as slash commands, as input, and as instructions."""

from __future__ import annotations

from typing import Any

import pytest
from agents import SQLiteSession
from agents.mcp import MCPServerStdio
from mcp.types import GetPromptResult, ListPromptsResult

from kantan_agents import Agent, KantanAgentsError, Prompt, SlashCommands, mcp_prompt
from kantan_agents.errors import InvalidOptionError, PromptNotFetchedError, RedactedContentBlockedError
from kantan_agents.middleware import Redact
from kantan_agents.testing import OfflineServer
from tests.conftest import TraceDB
from tests.tools.retrieval.servers import Server


class Prompts(Server):
    """A server with one prompt, whose messages a test gives."""

    def __init__(self, *messages: dict[str, Any], name: str = "notes", prompt: str = "greet") -> None:
        super().__init__(name, ["read"])
        self.messages = list(messages)
        self.prompt = prompt

    async def list_prompts(self) -> ListPromptsResult:
        listed = {"name": self.prompt, "description": "Greet.", "arguments": [{"name": "who"}]}
        return ListPromptsResult.model_validate({"prompts": [listed]})

    async def get_prompt(self, name: str, arguments: Any = None) -> GetPromptResult:
        return GetPromptResult.model_validate({"messages": self.messages})


def said(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": {"type": "text", "text": text}}


def asking(*servers: Any, model: Any = None, rules: Any = None, **options: Any) -> Agent:
    around = [SlashCommands(rules or {}, **options)]
    return Agent("a", "x", model=model, mcp_servers=list(servers), middleware=around)


async def sent_for(line: str, *servers: Any, streamed: bool = False, **options: Any) -> list[Any]:
    """Return the input that the model receives for a line."""
    with OfflineServer(["done"]) as offline:
        agent = asking(*servers, model=offline.bundle(), **options)
        if streamed:
            async with agent.stream(line) as stream:
                async for _ in stream:
                    pass
            context = stream.context
        else:
            context = await agent.run_async(line)
        assert context["result"].final_output == "done"
        (request,) = offline.requests
    return request.input


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
async def test_a_prompt_is_a_command_that_asks_the_model(everything: MCPServerStdio, streamed: bool) -> None:
    sent = await sent_for("/mcp__everything__args-prompt Paris", everything, streamed=streamed)
    assert sent == [{"role": "user", "content": "What's weather in Paris?"}]
    sent = await sent_for("/mcp__everything__args-prompt city=Austin state=Texas", everything)
    assert sent == [{"role": "user", "content": "What's weather in Austin, Texas?"}]


async def test_an_embedded_resource_of_a_prompt_is_its_text(everything: MCPServerStdio) -> None:
    sent = await sent_for("/mcp__everything__resource-prompt Text 1", everything)
    assert [item["content"].partition(":")[0] for item in sent] == [
        "This prompt includes the Text resource with id",
        "Resource 1",
    ]


async def test_a_wrong_command_says_how_to_write_it(everything: MCPServerStdio) -> None:
    agent = asking(everything)
    for line, message in (
        (
            "/mcp__everything__args-prompt",
            "[E55] Cannot read /mcp__everything__args-prompt: city: is missing",
        ),
        ("/mcp__everything__arg-prompt Paris", "Did you mean /mcp__everything__args-prompt"),
        (
            "/mcp__everything__resource-prompt Sound 1",
            "[E39] Cannot get prompt resource-prompt of MCP server ",
        ),
    ):
        with pytest.raises(KantanAgentsError) as caught:
            await agent.run_async(line)
        assert message in str(caught.value)


async def test_help_lists_and_explains_prompts(everything: MCPServerStdio) -> None:
    agent = asking(everything, rules={"allow": ["mcp__everything__args-prompt", "echo"]})
    listed = (await agent.run_async("/help"))["result"].final_output
    line = "/mcp__everything__args-prompt CITY [--state STATE]: A prompt with two arguments"
    assert [one[: len(line)] for one in listed.splitlines() if "mcp__" in one] == [line]
    explained = (await agent.run_async("/help mcp__everything__args-prompt"))["result"].final_output
    assert "  city (text, required): Name of the city" in explained


@pytest.mark.parametrize(
    ("rules", "code"),
    [
        ({"allow": ["echo", "args-prompt"]}, "E8"),
        ({"deny": ["mcp__everything__*"]}, "E8"),
        ({"deny": ["args-prompt"]}, "E8"),
        ({"params": {"args-prompt": {"city": {"enum": ["Rome"]}}}}, "E12"),
        ({"params": {"mcp__everything__args-prompt": {"city": {"enum": ["Rome"]}}}}, "E12"),
        ({"allow": ["mcp__everything__*"]}, None),
        ({"allow": ["mcp__everything__args-prompt"]}, None),
    ],
)
async def test_user_rules_apply_to_prompts(everything: MCPServerStdio, rules: Any, code: str | None) -> None:
    line = "/mcp__everything__args-prompt Paris"
    if code is None:
        assert await sent_for(line, everything, rules=rules)
        return
    with pytest.raises(KantanAgentsError) as caught:
        await asking(everything, rules=rules).run_async(line)
    assert caught.value.code == code


async def test_an_alias_may_name_a_prompt() -> None:
    sent = await sent_for("/hi Ada", Prompts(said("Hello")), aliases={"hi": "mcp__notes__greet"})
    assert sent == [{"role": "user", "content": "Hello"}]


async def test_a_prompt_takes_no_name_of_a_tool_or_of_another_server() -> None:
    done = await asking(Prompts(said("Hello"), prompt="read")).run_async("/mcp__notes__read")
    assert done["result"].final_output == "notes did read"
    claiming = Prompts(said("Hello"), name="a", prompt="b__greet")
    listed = (await asking(claiming, Server("a__b", ["x"])).run_async("/help"))["result"].final_output
    assert "greet" not in listed


async def test_personal_data_in_a_prompt_is_redacted_wherever_the_input_goes(traces: TraceDB) -> None:
    server = Prompts(said("Write to bo@example.com"))
    session = SQLiteSession("redacted")
    with OfflineServer(["done"]) as offline:
        around: list[Any] = [Redact(), SlashCommands({})]
        agent = Agent("a", "x", model=offline.bundle(), mcp_servers=[server], middleware=around)
        context = await agent.run_async("/mcp__notes__greet", session=session)
    kept = [offline.requests[0].input, context["history"], context["result"].to_input_list()]
    for place in (*kept, await session.get_items(), [span.input for span in traces.spans()]):
        assert "Write to [email]" in str(place)
        assert "bo@example.com" not in str(place)
    session.close()
    blocking = Agent("a", "x", mcp_servers=[server], middleware=[Redact(mode="block"), SlashCommands({})])
    with pytest.raises(RedactedContentBlockedError, match="the prompt mcp__notes__greet"):
        await blocking.run_async("/mcp__notes__greet")


async def test_a_session_and_the_trace_keep_the_prompt(everything: MCPServerStdio, traces: TraceDB) -> None:
    session = SQLiteSession("s")
    with OfflineServer(["Sunny.", "Yes."]) as offline:
        agent = asking(everything, model=offline.bundle())
        context = await agent.run_async("/mcp__everything__args-prompt Paris", session=session)
        await agent.run_async("Really?", session=session)
    assert context["history"][0] == {"role": "user", "text": "What's weather in Paris?"}
    texts = [str(item.get("content")) for item in offline.requests[1].input]
    assert [text for text in texts if "What's weather in Paris?" in text]
    assert any("What's weather in Paris?" in str(span.input) for span in traces.spans())
    session.close()


async def test_code_fetches_a_prompt_as_input(everything: MCPServerStdio) -> None:
    prompt = await mcp_prompt(everything, "args-prompt", {"city": "Paris"})
    assert (prompt.server, prompt.name, prompt.text) == (
        "everything",
        "args-prompt",
        "What's weather in Paris?",
    )
    with OfflineServer(["done"]) as offline:
        await Agent("a", "x", model=offline.bundle()).run_async(list(prompt.items))
    assert offline.requests[0].input == [{"role": "user", "content": "What's weather in Paris?"}]
    with pytest.raises(
        PromptNotFetchedError, match=r"Cannot get prompt nope of MCP server everything: .*not found"
    ):
        await mcp_prompt(everything, "nope")
    wrong: Any
    for wrong in ({"city": 3}, ["city"], "Paris", [], 3):
        with pytest.raises(InvalidOptionError, match="arguments"):
            await mcp_prompt(everything, "args-prompt", wrong)
    with pytest.raises(InvalidOptionError, match="server"):
        await mcp_prompt("everything", "args-prompt")  # type: ignore[arg-type]
    with pytest.raises(PromptNotFetchedError, match="it has no messages"):
        await mcp_prompt(Prompts(), "greet")


async def test_a_prompt_becomes_instructions_that_traces_name(traces: TraceDB) -> None:
    server = Prompts(said("Be {{ $ctx.mood }}. {{ $env.HOME }}"), said("Be brief.", "assistant"))
    prompt = await mcp_prompt(server, "greet")
    instructions = prompt.as_instructions()
    with OfflineServer(["done"]) as offline:
        agent = Agent(
            "a", instructions, model=offline.bundle(), allow_env=True, renderer=lambda *_: "rendered"
        )
        await agent.run_async("hi", {"mood": "cruel"})
    assert offline.requests[0].body["instructions"] == "Be {{ $ctx.mood }}. {{ $env.HOME }}\n\nBe brief."
    (trace,) = traces.traces()
    metadata = trace.metadata or {}
    assert metadata["prompt_name"] == "notes/greet"
    assert metadata["prompt_version"] == instructions.version
    assert metadata["prompt_meta_mcp_server"] == "notes"
    assert prompt.as_instructions("v2").version == "v2"


async def test_each_kind_of_content_becomes_input() -> None:
    blob = {"uri": "x://1", "mimeType": "image/png", "blob": "AA=="}
    contents: list[dict[str, Any]] = [
        {"type": "image", "data": "AA==", "mimeType": "image/png"},
        {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
        {"type": "resource", "resource": blob},
        {"type": "resource", "resource": {**blob, "mimeType": "application/zip"}},
        {"type": "resource_link", "uri": "x://2", "name": "two"},
    ]
    server = Prompts(*({"role": "user", "content": one} for one in contents), said("Yes.", "assistant"))
    prompt = await mcp_prompt(server, "greet")
    image = {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,AA=="}
    assert [item.get("content") for item in prompt.items] == [
        [image],
        "[audio audio/wav]",
        [image],
        "[resource x://1 application/zip]",
        "[resource_link x://2 two]",
        "Yes.",
    ]


def test_a_literal_prompt_is_a_prompt() -> None:
    with pytest.raises(InvalidOptionError, match=r"Prompt\.literal"):
        Prompt("a", "1", "x", literal="yes")  # type: ignore[arg-type]
