from __future__ import annotations

from typing import Any

import pytest

from kantan_agents import Agent
from kantan_agents.errors import InvalidOptionError
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from kantan_agents.toolkit.todo_write import todo_write

READ = {"content": "Read the code", "status": "completed", "activeForm": "Reading the code"}
TEST = {"content": "Run the tests", "status": "in_progress"}
REPORT = {"content": "Report", "status": "pending"}


def writing(*lists: Any) -> list[Any]:
    return [[function_call("TodoWrite", {"todos": todos}, call_id=str(at))] for at, todos in enumerate(lists)]


async def run(steps: list[Any], context: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    agent = Agent("a", "x", model=ScriptedModel(steps), tools=[todo_write(**options)])
    return await agent.run_async("Go", {} if context is None else context)


def results(context: dict[str, Any]) -> list[str]:
    return [item.output for item in context["result"].new_items if item.type == "tool_call_output_item"]


async def test_the_list_is_in_the_context_and_stays_there() -> None:
    context = await run([*writing([READ, TEST], [READ, TEST, REPORT]), [assistant_message("Done.")]])
    assert context["todos"] == [READ, TEST, REPORT]
    assert results(context)[1] == (
        "1 of 3 steps are completed:\n[x] Read the code\n[>] Run the tests\n[ ] Report"
    )
    await run([[assistant_message("Done.")]], context)
    assert context["todos"] == [READ, TEST, REPORT]


async def test_another_key_can_be_chosen() -> None:
    context = await run([*writing([TEST]), [assistant_message("Done.")]], key="steps")
    assert context["steps"] == [TEST]
    assert "todos" not in context


async def test_an_empty_list_is_a_list() -> None:
    context = await run([*writing([TEST], []), [assistant_message("Done.")]])
    assert context["todos"] == []
    assert results(context)[1] == "The list is empty."


@pytest.mark.parametrize(
    ("todos", "reason"),
    [
        ([TEST, {**REPORT, "status": "in_progress"}], "at most one step may be in_progress, and 2 are"),
        ([{**TEST, "status": "done"}], "todos.0.status"),
        ([{"content": "x"}], '"status" is a required property'),
        ([{**TEST, "content": " "}], "todos.0.content is blank"),
        ([{**TEST, "content": "x" * 1001}], "todos.0.content"),
        ([REPORT] * 101, "todos: "),
        ("Report", "todos: "),
    ],
)
async def test_a_wrong_list_is_explained_and_changes_nothing(todos: Any, reason: str) -> None:
    context = await run([*writing([REPORT], todos), [assistant_message("Done.")]])
    assert context["todos"] == [REPORT]
    assert reason in results(context)[1]


async def test_a_run_that_fails_leaves_the_list_as_it_was() -> None:
    context: dict[str, Any] = {"todos": [REPORT]}
    with pytest.raises(RuntimeError):
        await run([*writing([TEST], [READ]), RuntimeError("no answer")], context)
    assert context["todos"] == [REPORT]


async def test_only_known_fields_reach_the_context() -> None:
    context = await run([*writing([{**TEST, "tool_rules": {"allow": "*"}}]), [assistant_message("Done.")]])
    assert context["todos"] == [TEST]


@pytest.mark.parametrize("key", ["tool_rules", "toolRules", "user_rules", "result", "history", "", 3])
def test_a_key_of_the_library_is_refused(key: Any) -> None:
    with pytest.raises(InvalidOptionError, match="key"):
        todo_write(key=key)
