"""A model that sends wrong arguments reads which parameter is wrong, what came and what is expected."""

from __future__ import annotations

import enum
import json
from typing import Annotated, Any, Literal

import agents
import pytest
from agents import FunctionTool, RunConfig, RunContextWrapper, function_tool
from agents.tool import default_tool_error_function
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from kantan_agents import Agent
from kantan_agents.middleware import Deadline, Redact, ToolErrors
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from kantan_agents.testing.strategies import json_values
from kantan_agents.tools.guards.wrong_arguments import _problems

BEGIN = (
    "An error occurred while running the tool. Please try again. Error: Invalid JSON input for tool search: "
)


class Page(BaseModel):
    size: int
    rows: list[int] = []


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


def search(
    query: str,
    limit: int,
    page: Page | None = None,
    color: Color = Color.RED,
    order: Literal["up", "down"] = "up",
    share: Annotated[float, Field(le=1)] = 0.5,
    names: list[str] | None = None,
) -> str:
    """Search."""
    return "found"


def calling(arguments: Any) -> ScriptedModel:
    return ScriptedModel([[function_call("search", arguments, call_id="c1")], [assistant_message("done")]])


async def answer(arguments: Any, *middleware: Any, tool: Any = search, **options: Any) -> str:
    model = calling(arguments)
    agent = Agent("a", "x", tools=[tool], model=model, middleware=middleware)
    await agent.run_async("Go.", **options)
    assert model.last_call is not None
    return str(model.last_call.input[-1]["output"])


@pytest.mark.parametrize("middleware", [[], [Deadline(60)], [Redact("email")]])
@pytest.mark.parametrize(
    ("arguments", "problems"),
    [
        ({}, "query: is missing; limit: is missing"),
        ({"query": "a", "limit": "many"}, 'limit: must be an integer, not "many"'),
        ({"query": 5, "limit": 5.5}, "query: must be a text, not 5; limit: must be an integer, not 5.5"),
        ({"query": "a", "limit": None}, "limit: must be an integer, not null"),
        (
            {"query": "a", "limt": 5},
            "limit: is missing; limt: is not a parameter, did you mean limit?",
        ),
        ({"query": "a", "limit": 1, "page": {"size": "x"}}, 'page.size: must be an integer, not "x"'),
        (
            {"query": "a", "limit": 1, "page": {"size": 1, "rows": [1, "x"]}},
            'page.rows[1]: must be an integer, not "x"',
        ),
        ({"query": "a", "limit": 1, "page": [1]}, "page: must be an object, not [1]"),
        (
            {"query": "a", "limit": 1, "color": "green"},
            "color: must be one of 'red' or 'blue', not \"green\"",
        ),
        ({"query": "a", "limit": 1, "order": 1}, "order: must be one of 'up' or 'down', not 1"),
        ({"query": "a", "limit": 1, "share": 2}, "share: input should be less than or equal to 1, not 2"),
        ({"query": "a", "limit": 1, "names": "x"}, 'names: must be an array, not "x"'),
        ('{"query": "a", "limit": }', "the arguments are not JSON: Expecting value at character 24, near"),
    ],
)
async def test_each_wrong_parameter_is_named(middleware: list[Any], arguments: Any, problems: str) -> None:
    assert (await answer(arguments, *middleware)).startswith(BEGIN + problems)


async def test_long_values_and_many_mistakes_are_cut_short() -> None:
    text = await answer({"query": 1, "limit": "x" * 10_000, **{f"unknown_{n}" * 50: n for n in range(100)}})
    assert "x" * 100 not in text
    assert text.endswith("; and 82 more")
    assert len(text) < 8_000


async def test_the_users_own_error_function_gets_the_sdks_error() -> None:
    def mine(_context: RunContextWrapper[Any], error: Exception) -> str:
        return f"mine: {error}"

    tool = function_tool(search, failure_error_function=mine)
    for middleware in ([], [Deadline(60)]):
        text = await answer({"query": "a"}, *middleware, tool=tool)
        assert text.startswith("mine: Invalid JSON input for tool search")
        assert "is missing" not in text


async def test_tool_errors_still_chooses_the_text() -> None:
    fixed = "The tool search cannot take these arguments. Correct them and call it again."
    assert await answer({"query": "a"}, ToolErrors()) == fixed
    assert "limit: is missing" in await answer({"query": "a"}, ToolErrors("message"))


async def test_values_are_redacted() -> None:
    model = calling({"query": "a", "limit": "ann@example.com"})
    agent = Agent("a", "x", tools=[search], model=model, middleware=[Redact("email", restore=True)])
    seen: list[str] = []
    async with agent.stream("Go.") as run:
        seen += [repr(event) async for event in run]
    assert model.last_call is not None
    assert 'limit: must be an integer, not "[email_1]"' in model.last_call.input[-1]["output"]
    assert not any("ann@example.com" in event for event in seen if "ToolCallFinished" in event)


async def test_values_are_not_traced_if_data_is_sensitive(traces: Any) -> None:
    config = RunConfig(trace_include_sensitive_data=False)
    assert "many" in await answer({"query": "a", "limit": "many"}, run_config=config)
    (span,) = traces.spans(span_type="function")
    assert "many" not in repr(span)


async def test_an_error_that_the_function_itself_raises_is_unchanged() -> None:
    def search(query: str) -> str:
        raise ValueError("Invalid JSON input for tool search")

    plain = default_tool_error_function(
        RunContextWrapper(None), ValueError("Invalid JSON input for tool search")
    )
    assert await answer({"query": "a"}, tool=search) == plain


async def test_wrong_arguments_of_an_agent_used_as_a_tool_are_named_too() -> None:
    inner = agents.Agent[Any](name="inner", model=ScriptedModel([]))
    text = await answer({"inpt": 5}, tool=inner.as_tool("search", "Ask."))
    assert text.startswith(BEGIN)
    assert '"input" is a required property' in text


TOOL = function_tool(search, strict_mode=False)
TOOLS = (TOOL, FunctionTool("bare", "", {}, TOOL.on_invoke_tool))


@given(st.text(max_size=30) | json_values().map(json.dumps))
def test_any_arguments_can_be_described(text: str) -> None:
    for one in TOOLS:
        assert all(isinstance(problem, str) for problem in _problems(one, text))
