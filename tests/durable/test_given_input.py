"""A run that goes on sends the same as before, whatever middleware changes, and wherever ``Durable`` is."""

from __future__ import annotations

import asyncio
import copy
from pathlib import Path
from typing import Any

import pytest
from agents import custom_span, trace
from mcp.types import GetPromptResult, ListPromptsResult, Prompt, PromptMessage, TextContent

from kantan_agents import Agent, CommandLoader, Durable, DurableRuns, SlashCommands
from kantan_agents.testing import OfflineServer, RecordedRequest
from tests.durable.revival import Case, call, revive
from tests.lab.changed_runs import INPUTS, INSTRUCTIONS, MIDDLEWARE, write_commands
from tests.tools.mcp.offering import Offering

_LISTS = (
    ("commands",),
    ("please",),
    ("note", "restore"),
    ("count", "commands"),
    ("deadline", "limit", "long", "commands"),
)
_DRAWN = {
    f"{'-'.join(names)}-{number}": (names, given)
    for names in _LISTS
    for number, given in enumerate(INPUTS)
    if given != "/unknown"
}

pytestmark = pytest.mark.slow


def _case(names: tuple[str, ...], given: Any, loader: CommandLoader) -> Case:
    def build(case: Case) -> Agent[Any]:
        def look(x: str) -> str:
            """Look."""
            case.die()
            return f"saw {x}"

        def wipe(path: str) -> str:
            """Wipe."""
            case.effect(f"wipe {path}")
            case.die()
            return "wiped"

        middleware = [MIDDLEWARE[name](loader) for name in names]
        return case.agent(*middleware, Durable(), tools=[look, wipe], instructions=INSTRUCTIONS)

    return Case(
        build, {0: [call("look", "c1", x="it")], 1: "For carl@example.com: done."}, copy.deepcopy(given)
    )


@pytest.fixture(scope="module")
def revived(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    loader = write_commands(tmp_path_factory.mktemp("commands"))
    cases = {name: _case(*drawn, loader) for name, drawn in _DRAWN.items()}
    revive(tmp_path_factory.mktemp("runs"), cases)
    return cases


def _sent(request: RecordedRequest) -> tuple[Any, list[str], Any]:
    tools = [tool["name"] for tool in request.body["tools"]]
    return request.system_instructions, tools, request.input


@pytest.mark.parametrize("name", _DRAWN)
def test_a_run_that_goes_on_sends_the_same(revived: dict[str, Case], name: str) -> None:
    case = revived[name]
    if not case.requests[0]:  # a command that runs a tool
        assert case.effects == ["wipe notes"] * 2
        assert (case.output, case.requests[1]) == ("wiped", [])
        return
    instructions, tools, given = _sent(case.requests[0][0])
    again = _sent(case.requests[1][-1])
    assert again[:2] == (instructions, tools)
    assert again[2][: len(given)] == given
    assert case.output.endswith("done.")
    assert case.effects == []


def test_a_text_that_is_enqueued_inside_a_span_is_not_a_command(tmp_path: Path) -> None:
    def wipe(path: str) -> str:
        """Wipe."""
        return f"wiped {path}"

    async def enqueue(server: OfflineServer) -> list[Any]:
        middleware = [SlashCommands({"allow": ["wipe"]}), Durable()]
        agent = Agent("a", "Help.", model=server.bundle(), tools=[wipe], middleware=middleware)
        async with DurableRuns(f"sqlite:///{tmp_path / 'runs'}", agents=[agent], queues=["q"]) as runs:
            typed = await agent.enqueue("/wipe x", queue="q")
            with trace("outer"), custom_span("outer"):
                made_up = await agent.enqueue("/wipe x", queue="q")
            return [(await runs.result(run_id)).output for run_id in (typed, made_up)]

    with OfflineServer(["Text."]) as server:
        assert asyncio.run(enqueue(server)) == ["wiped x", "Text."]


def test_a_run_goes_on_with_the_prompt_that_a_server_returned_first(tmp_path: Path) -> None:
    fetched: list[str] = []

    class Greeting(Offering):
        async def list_prompts(self) -> Any:
            return ListPromptsResult(prompts=[Prompt(name="greet")])

        async def get_prompt(self, name: str, arguments: Any = None) -> Any:
            fetched.append(name)
            text = TextContent(type="text", text=f"Say hello {len(fetched)}.")
            return GetPromptResult(messages=[PromptMessage(role="user", content=text)])

    def build(case: Case) -> Agent[Any]:
        def look(x: str) -> str:
            """Look."""
            case.die()
            return f"saw {x}"

        servers: list[Any] = [Greeting("files", "read")]
        return case.agent(SlashCommands({"allow": ["*"]}), tools=[look], mcp_servers=servers)

    case = Case(build, {0: [call("look", "c1", x="it")], 1: "Hello."}, "/mcp__files__greet")
    revive(tmp_path, {"greeting": case})
    assert (case.output, fetched) == ("Hello.", ["greet"])
    assert case.requests[1][-1].input[0]["content"] == case.requests[0][0].input[0]["content"]
