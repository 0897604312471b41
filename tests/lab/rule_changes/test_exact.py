"""The property of ``what_if``: the answer is what really happens under the other rules."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any

import pytest
from agents import FunctionTool, function_tool
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from kantan_agents import Agent
from kantan_agents.testing import Reply, ScriptedModel, ScriptedToolCall
from kantan_agents.testing.properties import event
from kantan_agents.testing.strategies import tool_calls, tool_rules
from tests.lab.rule_changes.recorded import Recording, decision, predicted, recording
from tests.sizes import examples


class Page(BaseModel):
    size: int = 20
    number: Annotated[int, Field(alias="page")] = 1


@function_tool(strict_mode=False)
def search(query: str, limit: int = 10, deep: bool = False) -> str:
    return query


@function_tool
def bash(command: str) -> str:
    return command


@function_tool(strict_mode=False)
def pages(page: Page, tags: list[str] | None = None) -> str:
    return str(page)


async def _plain(context: Any, arguments: str) -> str:
    return arguments


fetch = FunctionTool(
    "fetch",
    "Fetch.",
    {
        "type": "object",
        "properties": {"url": {"type": "string"}, "retries": {"type": "integer", "default": 3}},
        "required": ["url"],
    },
    _plain,
    strict_json_schema=False,
)

TOOLS: list[Any] = [search, bash, pages, fetch]
RULES = tool_rules(tools=TOOLS) | tool_rules()


def scripted(calls: list[ScriptedToolCall]) -> Agent[Any]:
    return Agent(
        "support",
        "Help.",
        model=ScriptedModel([Reply(tool_calls=calls), "Done."]),
        tools=TOOLS,
        tool_providers=None,
    )


@st.composite
def questions(draw: st.DrawFn) -> tuple[Any, Any, list[ScriptedToolCall]]:
    before, after = draw(RULES), draw(RULES)
    calls = st.one_of(
        tool_calls(before, tools=TOOLS, malformed=True),
        tool_calls(after, tools=TOOLS, malformed=True),
        tool_calls(after, tools=TOOLS),
    )
    drawn = draw(st.lists(calls, min_size=1, max_size=8))
    return before, after, [ScriptedToolCall(*call, id=f"c{n}") for n, call in enumerate(drawn)]


async def check(recorded: Recording, before: Any, after: Any, calls: list[ScriptedToolCall]) -> None:
    first = await recorded.run(scripted(calls), before)
    second = await recorded.run(scripted(calls), after)
    made, remade = recorded.calls(first), {call.call_id: call for call in recorded.calls(second)}
    answer = recorded.ask(after, first)
    assert not answer.unjudged
    assert answer.judged + answer.invalid == len(made) == len(calls)
    for call_id, is_allowed in predicted(answer, made).items():
        assert decision(remade[call_id]).is_allowed == is_allowed, remade[call_id]
    for flip in answer.flips:
        found = decision(remade[flip.call_id])
        event("newly allowed" if flip.is_allowed else "newly denied")
        assert found.rule is None or found == flip.after


@examples(8, published=15)
@given(questions())
async def test_what_if_gives_the_decisions_of_a_run_under_the_other_rules(question: Any) -> None:
    with tempfile.TemporaryDirectory() as directory, recording(Path(directory) / "t.sqlite3") as recorded:
        await check(recorded, *question)


@function_tool
def shell(command: str, cwd: str = "/") -> str:
    return command + cwd


@pytest.mark.parametrize("arguments", [{}, {"cwd": "/"}, {"command": "ls"}, {"cwd": "/tmp"}])
async def test_the_default_of_a_parameter_is_not_checked_if_another_one_is_missing(
    tmp_path: Path, arguments: dict[str, str]
) -> None:
    def run() -> Agent[Any]:
        model = ScriptedModel([Reply(tool_calls=[ScriptedToolCall("shell", arguments, id="c0")]), "Done."])
        return Agent("support", "Help.", model=model, tools=[shell], tool_providers=None)

    in_tmp = {"params": {"shell": {"cwd": {"enum": ["/tmp"]}}}}
    with recording(tmp_path / "t.sqlite3") as recorded:
        for before, after in (({}, in_tmp), (in_tmp, {}), (in_tmp, in_tmp)):
            first, second = await recorded.run(run(), before), await recorded.run(run(), after)
            answer, made = recorded.ask(after, first), recorded.calls(first)
            assert not answer.unjudged
            (remade,) = recorded.calls(second)
            assert predicted(answer, made) == {"c0": decision(remade).is_allowed}
