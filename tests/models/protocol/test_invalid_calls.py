"""Invalid tool calls return an error to the model; too many of them end the run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kantan_agents import Agent, ContentSegment
from kantan_agents.core.events import ToolCallDenied
from kantan_agents.errors import ToolInputError, UnknownToolError
from kantan_agents.models.protocol import ProviderToolCall
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from kantan_agents.tools.guards.invalid_calls import (
    INVALID_TURNS,
    NAMES_LISTED,
    malformed_arguments,
    usable_tools_sentence,
)
from tests.models.protocol.scripted import Scripted, call, text


def look_up(word: str = "") -> str:
    """Look it up."""
    return f"meaning of {word}"


def turns(kind: str, *calls: tuple[str, Any]) -> Any:
    """Return a provider or a model that makes one call per turn, and then answers "done"."""
    if kind == "provider":
        made = (ContentSegment("tool_call", tool_call=ProviderToolCall(name, args)) for name, args in calls)
        return Scripted(*made, text("done"))
    script = [
        [function_call(name, json.dumps(args), call_id=f"c{n}")] for n, (name, args) in enumerate(calls)
    ]
    return ScriptedModel([*script, [assistant_message("done")]])


def results(model: Any) -> list[str]:
    if isinstance(model, Scripted):
        return [message.text for message in model.contexts[-1].messages if message.role == "tool"]
    return [str(item["output"]) for item in model.last_call.input if "output" in item]


KINDS = pytest.mark.parametrize("kind", ["provider", "model"])


@KINDS
async def test_a_call_of_an_unknown_tool_returns_the_nearest_names(kind: str) -> None:
    model = turns(kind, ("lookup", {"word": "a"}))
    context = await Agent("a", "x", tools=[look_up], model=model).run_async("Go.")
    assert context["result"].final_output == "done"
    assert results(model) == [
        "[kantan-agents][E21] There is no tool with this name: lookup\nTools you may use: look_up."
    ]


@KINDS
@pytest.mark.parametrize("args", [None, 3, -1.5, True, "word", [1], [{"word": "a"}]])
async def test_arguments_that_are_not_an_object_return_an_error(kind: str, args: Any) -> None:
    model = turns(kind, ("look_up", args), ("look_up", {"word": "a"}))
    agent = Agent("a", "x", tools=[look_up], model=model)
    async with agent.stream("Go.") as run:
        refusals = [event async for event in run if isinstance(event, ToolCallDenied)]
    first, second = results(model)
    assert first.startswith("[kantan-agents][E10] Tool input must be a JSON object\nThe reason is: it is ")
    assert second == "meaning of a"
    assert [event.code for event in refusals] == ["E10"]


@KINDS
@pytest.mark.parametrize(
    ("made", "error"), [(("lookup", {}), UnknownToolError), (("look_up", [1]), ToolInputError)]
)
async def test_a_model_that_only_makes_invalid_calls_ends_the_run(
    kind: str, made: Any, error: type[Exception]
) -> None:
    model = turns(kind, *[made] * 20)
    with pytest.raises(error):
        await Agent("a", "x", tools=[look_up], model=model).run_async("Go.", max_turns=50)
    assert len(model.contexts if kind == "provider" else model.calls) == INVALID_TURNS


@KINDS
async def test_a_valid_call_resets_the_count(kind: str) -> None:
    wrong: tuple[str, Any] = ("lookup", {})
    right = ("look_up", {"word": "a"})
    model = turns(kind, *[wrong] * (INVALID_TURNS - 1), right, *[wrong] * (INVALID_TURNS - 1))
    context = await Agent("a", "x", tools=[look_up], model=model).run_async("Go.", max_turns=50)
    assert context["result"].final_output == "done"


async def test_a_turn_with_one_valid_call_does_not_count_as_invalid() -> None:
    both = [call("lookup"), call("look_up", {"word": "a"}), call("look_up", [])]
    model = Scripted(*[both] * 8, text("done"))
    context = await Agent("a", "x", tools=[look_up], model=model).run_async("Go.", max_turns=50)
    assert context["result"].final_output == "done"


async def test_each_run_starts_with_a_count_of_zero() -> None:
    model = turns("provider", *[("lookup", {})] * 3)
    agent = Agent("a", "x", tools=[look_up], model=model)
    for _ in range(3):
        model.answers = [call("lookup"), call("lookup"), text("done")]
        context = await agent.run_async("Go.")
        assert context["result"].final_output == "done"


def test_of_a_thousand_tools_only_the_nearest_names_are_listed() -> None:
    names = [
        f"{verb}_{thing}_{n}" for verb in ("get", "set") for thing in ("user", "file") for n in range(250)
    ]
    listed = usable_tools_sentence([*names, "get_weather"], "GetWeather")
    assert listed.startswith("Tools you may use, the nearest names first: get_weather, ")
    assert listed.count(",") == NAMES_LISTED  # one of the commas does not separate names
    assert listed.endswith("(and 981 more).")
    assert usable_tools_sentence(names, "x" * 1_000_000).endswith("(and 980 more).")
    assert usable_tools_sentence([], "x") == "Tools you may use: none."


@pytest.mark.parametrize("arguments", ["", "{}", ' \n{"a": 1}', "{broken", "   "])
def test_arguments_that_may_be_an_object_are_left_to_the_tool(arguments: str) -> None:
    assert malformed_arguments("f", {"type": "object"}, arguments) is None
    assert malformed_arguments("f", {}, "[1]") is None
    assert malformed_arguments("f", {"type": "object"}, "hello") is not None
