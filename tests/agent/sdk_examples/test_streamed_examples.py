"""What the streamed examples of the SDK do, with ``agent.stream``.

Each function does what the example in its name does, over HTTP with scripted replies.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import agents
import attrs
import pytest
import websockets
from agents import (
    CodeInterpreterTool,
    HostedMCPTool,
    ModelSettings,
    function_tool,
    handoff,
    responses_websocket_session,
    trace,
)
from kantan_llm import AsyncClientBundle
from openai import AsyncOpenAI
from openai.types.shared import Reasoning
from pydantic import BaseModel

from kantan_agents import Agent
from kantan_agents.testing import OfflineServer, ScriptedToolCall
from tests.core.events.wire_events import CODE, REASONING, deltas, streamed, summary, text
from tests.models.protocol.wire_server import Body, WireServer

Say: TypeAlias = Callable[[object], None]


def how_many() -> int:
    """Return how many jokes to make."""
    return 2


async def basic_stream_text(server: OfflineServer, say: Say) -> None:
    async with Agent("Joker", "Joke.", model=server.bundle()).stream("Tell me jokes.") as run:
        async for piece in run.text_deltas():
            say(piece)


async def basic_stream_items(server: OfflineServer, say: Say) -> None:
    agent = Agent("Joker", "First ask how many.", model=server.bundle(), tools=[how_many])
    async with agent.stream("Hello") as run:
        async for event in run:
            if event.type == "tool_call_started":
                say(f"called {event.tool}")
            elif event.type == "tool_call_finished":
                say(f"output {event.output}")
            elif event.type == "run_finished":
                say(f"message {event.output}")


async def basic_stream_function_call_args(server: OfflineServer, say: Say) -> None:
    def write_file(filename: str, content: str) -> str:
        """Write a file."""
        return "written"

    agent = Agent("Coder", "Write.", model=server.bundle(), tools=[write_file])
    calls: dict[str, str] = {}
    open_call = ""
    async with agent.stream("Make a project", raw_events=True) as run:
        async for event in run:
            if event.type != "raw_response_event":
                continue
            data = event.data
            if data.type == "response.output_item.added" and data.item.type == "function_call":
                open_call = data.item.call_id
                calls[open_call] = ""
                say(f"begins {data.item.name}")
            elif data.type == "response.function_call_arguments.delta":
                calls[open_call] += data.delta
            elif data.type == "response.output_item.done" and data.item.type == "function_call":
                say(f"has {calls[data.item.call_id]}")


async def basic_previous_response_id(server: OfflineServer, say: Say) -> None:
    agent = Agent("Assistant", "Be concise.", model=server.bundle())
    async with agent.stream("What is the largest country in South America?") as run:
        say([piece async for piece in run.text_deltas()])
    previous = run.context["result"].last_response_id
    async with agent.stream("And its capital?", previous_response_id=previous) as run:
        say([piece async for piece in run.text_deltas()])
    say(server.requests[1].body["previous_response_id"] == previous)


async def patterns_streaming_guardrails(server: OfflineServer, say: Say) -> None:
    class Verdict(BaseModel):
        is_simple: bool

    checker = Agent("Checker", "Is it simple?", model=server.bundle(), output_type=Verdict)

    async def check(written: str) -> bool:
        context = await checker.run_async(written)
        return bool(context["result"].final_output.is_simple)

    written, checking = "", None
    async with Agent("Assistant", "Be verbose.", model=server.bundle()).stream("Black holes?") as run:
        async for piece in run.text_deltas():
            written += piece
            if checking is None and len(written) >= 16:
                checking = asyncio.create_task(check(written))
            if checking is not None and not await checking:
                break
    say(written)


async def patterns_routing(server: OfflineServer, say: Say) -> None:
    french = Agent("french_agent", "Speak French.", model=server.bundle())
    triage = Agent("triage_agent", "Hand off.", model=server.bundle(), handoffs=[french])
    by_name = {agent.name: agent for agent in (french, triage)}
    agent, items = triage, [{"role": "user", "content": "Bonjour"}]
    for question in ("Et Paris ?", "Merci"):
        with trace("Routing example", group_id="one"):
            async with agent.stream(items, raw_events=True) as run:
                async for event in run:
                    if event.type != "raw_response_event":
                        continue
                    if event.data.type == "response.output_text.delta":
                        say(event.data.delta)
                    elif event.data.type == "response.content_part.done":
                        say("---")
        result = run.context["result"]
        items = [*result.to_input_list(), {"role": "user", "content": question}]
        agent = by_name[result.last_agent.name]
        say(agent.name)


async def patterns_human_in_the_loop_stream(server: OfflineServer, say: Say) -> None:
    async def in_oakland(_context: Any, given: dict[str, Any], _call_id: str) -> bool:
        return "Oakland" in given["city"]

    @function_tool(needs_approval=in_oakland)
    async def get_temperature(city: str) -> str:
        return f"20 degrees in {city}"

    agent = Agent("Weather", "Answer.", model=server.bundle(), tools=[get_temperature])
    asked: Any = "How warm is Oakland?"
    context: dict[str, Any] = {}
    while True:
        async with agent.stream(asked, context) as run:
            async for event in run:
                if event.type == "approval_needed":
                    say(f"{event.tool} {event.arguments}")
        result = run.context["result"]
        if not result.interruptions:
            break
        asked = result.to_state()
        for item in result.interruptions:
            asked.approve(item)
    say(result.final_output)


async def patterns_agents_as_tools_streaming(server: OfflineServer, say: Say) -> None:
    seen: list[str] = []
    billing = Agent("billing_agent", "Answer billing questions.", model=server.bundle())
    tool = billing.sdk_agent.as_tool(
        "billing", "Billing.", on_stream=lambda event: seen.append(event["event"].type)
    )
    agent = Agent("support", "Use your tool.", model=server.bundle(), tools=[tool])
    context = await agent.run_async("How much do I owe?")
    say(context["result"].final_output)
    say(sorted(set(seen)))


async def reasoning_runner_example(server: OfflineServer, say: Say) -> None:
    agent = Agent(
        "Reasoning",
        "Think.",
        model=server.bundle(),
        model_settings=ModelSettings(reasoning=Reasoning(effort="medium", summary="detailed")),
    )
    async with agent.stream("What is the square root of 841?", raw_events=True) as run:
        async for event in run:
            if event.type == "raw_response_event":
                if event.data.type == "response.reasoning_summary_text.delta":
                    say(f"reasons {event.data.delta}")
                elif event.data.type == "response.output_text.delta":
                    say(f"answers {event.data.delta}")
    items = run.context["result"].new_items
    say([item.raw_item.summary[0].text for item in items if item.type == "reasoning_item"])


async def handoffs_message_filter_streaming(server: OfflineServer, say: Say) -> None:
    def without_the_first(data: agents.HandoffInputData) -> agents.HandoffInputData:
        history = data.input_history
        return data.clone(input_history=history[1:] if isinstance(history, tuple) else history)

    spanish = Agent("spanish", "Speak Spanish.", model=server.bundle())
    first = Agent("first", "Be concise.", model=server.bundle())
    second = Agent(
        "second",
        "Hand off for Spanish.",
        model=server.bundle(),
        handoffs=[handoff(spanish.sdk_agent, input_filter=without_the_first)],
    )
    items = (await first.run_async("My name is Sora."))["result"].to_input_list()
    async with second.stream([*items, {"role": "user", "content": "Hola"}]) as run:
        async for event in run:
            if event.type == "handed_off":
                say(f"to {event.to_agent}")
    say([item.get("content") for item in server.requests[-1].input if item.get("role") == "user"])
    say(run.context["result"].final_output)


def mcp_server(approval: str, **options: Any) -> HostedMCPTool:
    config: Any = {
        "type": "mcp",
        "server_label": "docs",
        "server_url": "http://127.0.0.1/",
        "require_approval": approval,
    }
    return HostedMCPTool(tool_config=config, **options)


async def hosted_mcp_connectors(server: OfflineServer, say: Say) -> None:
    agent = Agent("Calendar", "Answer.", model=server.bundle(), tools=[mcp_server("never")])
    async with agent.stream("What is my schedule?", raw_events=True) as run:
        async for event in run:
            if event.type == "raw_response_event":
                data = event.data
                if data.type == "response.output_item.done":
                    say(data.to_dict()["item"]["type"])  # type: ignore[index]
                elif data.type.startswith("response.mcp"):
                    say(data.type)


async def hosted_mcp_human_in_the_loop(server: OfflineServer, say: Say) -> None:
    agent = Agent("Docs", "Answer.", model=server.bundle(), tools=[mcp_server("always")])
    asked: Any = "Which language?"
    context: dict[str, Any] = {}
    while True:
        async with agent.stream(asked, context, max_turns=100) as run:
            say([piece async for piece in run.text_deltas()])
        result = run.context["result"]
        if not result.interruptions:
            return
        asked = result.to_state()
        for item in result.interruptions:
            say(item.name)
            asked.approve(item)


async def hosted_mcp_on_approval(server: OfflineServer, say: Say) -> None:
    def approve(request: Any) -> Any:
        say(request.data.name)
        return {"approve": True}

    tool = mcp_server("always", on_approval_request=approve)
    async with Agent("Docs", "Answer.", model=server.bundle(), tools=[tool]).stream("Which?") as run:
        say([piece async for piece in run.text_deltas()])
    say(server.requests[-1].input[-1]["type"])


async def tools_code_interpreter(server: OfflineServer, say: Say) -> None:
    tool = CodeInterpreterTool(tool_config={"type": "code_interpreter", "container": {"type": "auto"}})
    agent = Agent("Calculator", "Calculate.", model=server.bundle(), tools=[tool])
    async with agent.stream("1 + 1?", raw_events=True) as run:
        async for event in run:
            if event.type == "raw_response_event":
                if event.data.type == "response.code_interpreter_call_code.delta":
                    say(event.data.delta)
                elif event.data.type == "response.output_item.done":
                    say(event.data.item.type)
    say(run.context["result"].final_output)


async def research_bot_manager(server: OfflineServer, say: Say) -> None:
    class Report(BaseModel):
        title: str

    agent = Agent("Writer", "Write a report.", model=server.bundle(), output_type=Report)
    with trace("Research"):
        async with agent.stream("Write") as run:
            async for event in run:
                if event.type == "model_call_started":
                    say("Thinking about report ...")
    say(run.context["result"].final_output.title)


APPROVAL = {
    "id": "mcpr_1",
    "type": "mcp_approval_request",
    "server_label": "docs",
    "name": "search",
    "arguments": "{}",
}
MCP_CALL = {
    "id": "mcp_1",
    "type": "mcp_call",
    "server_label": "docs",
    "name": "search",
    "arguments": "{}",
    "output": "found",
}
CODE_CALL = {
    "id": "ci_1",
    "type": "code_interpreter_call",
    "status": "completed",
    "code": "1 + 1",
    "container_id": "c",
    "outputs": None,
}


@attrs.frozen
class Example:
    play: Callable[[OfflineServer, Say], Awaitable[None]]
    replies: list[Any]
    says: list[object]


EXAMPLES = [
    Example(basic_stream_text, [streamed(text("Ha", "ha."))], ["Ha", "ha."]),
    Example(
        basic_stream_items,
        [ScriptedToolCall("how_many"), "Two jokes."],
        ["called how_many", "output 2", "message Two jokes."],
    ),
    Example(
        basic_stream_function_call_args,
        [
            [
                ScriptedToolCall("write_file", {"filename": "a.py", "content": "import a"}),
                ScriptedToolCall("write_file", {"filename": "b.py", "content": "import b"}),
            ],
            "Done.",
        ],
        [
            "begins write_file",
            'has {"filename": "a.py", "content": "import a"}',
            "begins write_file",
            'has {"filename": "b.py", "content": "import b"}',
        ],
    ),
    Example(basic_previous_response_id, ["Brazil.", "Brasilia."], [["Brazil."], ["Brasilia."], True]),
    Example(
        patterns_streaming_guardrails,
        ["A black hole is a region of spacetime.", {"is_simple": False}],
        ["A black hole is "],
    ),
    Example(
        patterns_routing,
        [ScriptedToolCall("transfer_to_french_agent"), "Bonjour.", "Oui, Paris."],
        ["Bonjour.", "---", "french_agent", "Oui, Paris.", "---", "french_agent"],
    ),
    Example(
        patterns_human_in_the_loop_stream,
        [ScriptedToolCall("get_temperature", {"city": "Oakland"}), "20 degrees."],
        ['get_temperature {"city": "Oakland"}', "20 degrees."],
    ),
    Example(
        patterns_agents_as_tools_streaming,
        [ScriptedToolCall("billing", {"input": "?"}), "You owe 3.", "You owe 3 dollars."],
        [
            "You owe 3 dollars.",
            ["agent_updated_stream_event", "raw_response_event", "run_item_stream_event"],
        ],
    ),
    Example(
        reasoning_runner_example,
        [
            streamed(
                (summary("29 * 29."), deltas(REASONING, "29 ", "* 29.", item="rs_1", summary_index=0)),
                text("2", "9", index=1),
            )
        ],
        ["reasons 29 ", "reasons * 29.", "answers 2", "answers 9", ["29 * 29."]],
    ),
    Example(
        handoffs_message_filter_streaming,
        ["Hi Sora.", ScriptedToolCall("transfer_to_spanish"), "Hola Sora."],
        ["to spanish", ["Hola"], "Hola Sora."],
    ),
    Example(
        hosted_mcp_connectors,
        [
            streamed(
                (
                    MCP_CALL,
                    [{"type": "response.mcp_call.in_progress", "item_id": "mcp_1", "output_index": 0}],
                ),
                text("Nothing today.", index=1),
            )
        ],
        ["response.mcp_call.in_progress", "mcp_call", "message"],
    ),
    Example(
        hosted_mcp_human_in_the_loop,
        [streamed((APPROVAL, [])), streamed(text("Rust."))],
        [[], "search", ["Rust."]],
    ),
    Example(
        hosted_mcp_on_approval,
        [streamed((APPROVAL, [])), streamed(text("Rust."))],
        ["search", ["Rust."], "mcp_approval_response"],
    ),
    Example(
        tools_code_interpreter,
        [streamed((CODE_CALL, deltas(CODE, "1 +", " 1", item="ci_1")), text("It is 2.", index=1))],
        ["1 +", " 1", "code_interpreter_call", "message", "It is 2."],
    ),
    Example(research_bot_manager, [{"title": "Winds"}], ["Thinking about report ...", "Winds"]),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.play.__name__)
async def test_an_example_of_the_sdk(example: Example) -> None:
    said: list[object] = []
    with OfflineServer(example.replies) as server:
        await example.play(server, said.append)
        assert len(server.requests) == len(example.replies)
    assert said == example.says


async def test_reasoning_gpt_oss_stream() -> None:
    def chunk(finish_reason: str | None = None, **delta: str) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return {
            "id": "c",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": "gpt-oss",
            "choices": [choice],
        }

    said: list[str] = []
    events = [chunk(reasoning="Recall."), chunk("stop", content="A function.")]
    with WireServer([Body(events=events)]) as server:
        async with AsyncOpenAI(api_key="k", base_url=server.url) as client:
            model = AsyncClientBundle(client, "gpt-oss", "compat", server.url)
            async with Agent("Assistant", "Answer.", model=model).stream("?", raw_events=True) as run:
                async for event in run:
                    if event.type == "raw_response_event":
                        if event.data.type == "response.reasoning_text.delta":
                            said.append(f"reasons {event.data.delta}")
                        elif event.data.type == "response.output_text.delta":
                            said.append(f"answers {event.data.delta}")
    assert said == ["reasons Recall.", "answers A function."]


async def test_basic_stream_ws() -> None:
    received: list[str] = []

    async def answer(connection: websockets.ServerConnection) -> None:
        async for sent in connection:
            received.append(json.loads(sent)["type"])
            thought = (summary("Hm."), deltas(REASONING, "Hm.", item="rs_1", summary_index=0))
            for event in streamed(thought, text("Eligi", "ble.", index=1)).events:
                await connection.send(event.model_dump_json())

    said: list[str] = []
    async with websockets.serve(answer, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        url = f"ws://127.0.0.1:{port}/v1"
        async with responses_websocket_session(api_key="k", websocket_base_url=url) as session:
            agent = Agent(
                "Support",
                "Help.",
                model="gpt-5.6-sol",
                model_provider_factory=lambda: session.run_config.model_provider,
            )
            previous = None
            for question in ("Refund?", "Which ticket?"):
                async with agent.stream(question, previous_response_id=previous, raw_events=True) as run:
                    async for event in run:
                        if event.type == "raw_response_event" and (
                            event.data.type == "response.reasoning_summary_text.delta"
                            or event.data.type == "response.output_text.delta"
                        ):
                            said.append(event.data.delta)
                previous = run.context["result"].last_response_id
    assert said == ["Hm.", "Eligi", "ble."] * 2
    assert received == ["response.create"] * 2
