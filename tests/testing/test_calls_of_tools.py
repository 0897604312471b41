"""Tool calls drawn from the schemas of the tools: most run, and each kind of mistake occurs."""

from __future__ import annotations

import enum
import json
from collections import Counter
from typing import Annotated, Any, Literal

import agents
import jsonschema_rs
import pydantic
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from kantan_agents import Agent, subscribe
from kantan_agents.core.events import ToolCallFinished
from kantan_agents.errors import InvalidOptionError
from kantan_agents.testing import ScriptedModel
from kantan_agents.testing.properties import expect_events
from kantan_agents.testing.strategies import tool_calls, tool_rules
from kantan_agents.testing.strategies.schemas import valid_values, validity
from kantan_agents.tool_rules import ToolRules, decide_call
from kantan_agents.tools.facts import facts_of
from tests.models.structured.schema_strategies import schemas
from tests.sizes import size

from .occurring import SEARCH, first_of_each


class Color(enum.Enum):
    RED = "red"
    GREEN = "green"


class Node(pydantic.BaseModel):
    weight: Annotated[float, pydantic.Field(gt=0, le=2.5)]
    name: Annotated[str, pydantic.Field(pattern="^[a-z]+$", max_length=6)]
    children: list[Node] = []


def plant(
    node: Node,
    color: Color,
    mode: Literal["fast", "slow"],
    count: Annotated[int, pydantic.Field(ge=1, le=5)],
    either: int | str | None = None,
    more: dict[str, int] = {},  # noqa: B006 - never changed
) -> str:
    """Plant a tree."""
    return "planted"


def pay(amount: int, note: str) -> str:
    """Pay."""
    return "paid"


def refund(amount: int) -> str:
    """Refund."""
    return "refunded"


RULES: dict[str, Any] = {
    "allow": ["pay"],
    "params": {"pay": {"amount": {"type": "integer", "minimum": 1, "maximum": 100}}},
}
LOOSE = agents.function_tool(plant, strict_mode=False)
PAY, REFUND = agents.function_tool(pay), agents.function_tool(refund)


def run(call: Any, *tools: Any, rules: Any = None) -> None:
    name, arguments = call
    model = ScriptedModel([{"tool": name, "arguments": arguments}, "done"])
    Agent("a", "b", model=model, tools=tools).run("hi", {"tool_rules": rules or {}})


# Values of a schema


@settings(max_examples=60)
@given(schemas().flatmap(lambda schema: st.tuples(st.just(schema), valid_values(schema))))
def test_values_of_any_schema_are_valid(drawn: tuple[dict[str, Any], Any]) -> None:
    schema, value = drawn
    assert jsonschema_rs.is_valid(schema, value)
    assert json.loads(json.dumps(value)) == value


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "minimum": 3, "exclusiveMaximum": 5},
        {"type": "integer", "multipleOf": 7, "maximum": 20},
        {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        {"type": "string", "minLength": 30},
        {"type": "string", "pattern": "^[a-z]{3}-\\d+$"},
        {"type": "string", "format": "date-time"},
        {"type": "string", "format": "uuid"},
        {"type": ["string", "null"]},
        {"enum": [1, "a", None]},
        {"const": {"a": 1}},
        {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 3},
        {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True},
        {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False},
        {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 1},
        {"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False},
        {"allOf": [{"type": "integer", "minimum": 1}, {"maximum": 4}]},
        {"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/x"}], "$defs": {"x": {"type": "boolean"}}},
        {"oneOf": [{"type": "integer"}, {"type": "null"}]},
        {"type": "string", "not": {"enum": ["", "0"]}},
        {},
    ],
)
def test_each_keyword_is_followed(schema: dict[str, Any]) -> None:
    @settings(max_examples=30, database=None)
    @given(valid_values(schema))
    def check(value: Any) -> None:
        assert jsonschema_rs.is_valid(schema, value)

    check()


# Calls


@settings(max_examples=40)
@expect_events("tool ran: plant")
@given(tool_calls(tools=[LOOSE], invalid=0))
def test_every_valid_call_runs(call: Any) -> None:
    name, arguments = call
    assert name == "plant"
    assert jsonschema_rs.is_valid(LOOSE.params_json_schema, arguments)
    outputs: list[Any] = []
    with subscribe(
        lambda event: outputs.append(event.output) if isinstance(event, ToolCallFinished) else None
    ):
        run(call, LOOSE)
    assert outputs == ["planted"]


@settings(max_examples=100)
@expect_events("tool ran", "tool denied", "tool failed", "tool unknown")
@given(tool_calls(RULES, tools=[pay, refund], malformed=True))
def test_every_outcome_occurs(call: Any) -> None:
    run(call, PAY, REFUND, rules=RULES)


def test_every_kind_of_invalid_call_occurs() -> None:
    def of_pay(call: tuple[str, Any]) -> dict[str, Any]:
        return call[1] if call[0] == "pay" and isinstance(call[1], dict) else {}

    first_of_each(
        tool_calls(RULES, tools=[pay, refund], malformed=True),
        {
            "an unknown tool": lambda call: call[0] not in ("pay", "refund"),
            "a missing argument": lambda call: set(of_pay(call)) == {"amount"},
            "an additional argument": lambda call: set(of_pay(call)) > {"amount", "note"},
            "a wrong type": lambda call: type(of_pay(call).get("note")) is list,
            "a value beyond a limit": lambda call: of_pay(call).get("amount") == 101,
            "a tool that is not allowed": lambda call: call[0] == "refund",
            "malformed JSON": lambda call: isinstance(call[1], str) and not call[1].endswith("}"),
        },
    )


@given(tool_calls(RULES, tools=[pay, refund]))
def test_arguments_are_a_dict_unless_malformed_ones_are_asked_for(call: Any) -> None:
    assert isinstance(call[1], dict)


def shares(strategy: Any) -> Counter[str]:
    """Return how often a call is allowed by the rules and valid for the schema, in percent."""
    counts: Counter[str] = Counter()
    facts = {"pay": facts_of(PAY), "refund": facts_of(REFUND)}
    valid = {name: validity(dict(one.schema or {})) for name, one in facts.items()}
    rules = ToolRules.parse(RULES)

    number = size(300, 100)

    @settings(max_examples=number, database=None, deadline=None, derandomize=True, phases=[Phase.generate])
    @given(strategy)
    def count(call: tuple[str, Any]) -> None:
        name, arguments = call
        counts["all"] += 1
        if name in facts and valid[name](arguments):
            allowed = decide_call(rules, facts[name], arguments).allowed
            counts["runs" if allowed else "refused"] += 1

    count()
    return counts


@pytest.mark.parametrize(("invalid", "least", "most"), [(0, 0.97, 1), (0.4, 0.45, 0.8), (1, 0, 0.2)])
def test_the_share_of_invalid_calls_can_be_chosen(invalid: float, least: float, most: float) -> None:
    counts = shares(tool_calls(RULES, tools=[pay, refund], invalid=invalid))
    assert least <= counts["runs"] / counts["all"] <= most


def test_most_calls_run_if_the_tools_are_given() -> None:
    with_tools = shares(tool_calls(RULES, tools=[pay, refund]))
    without = shares(tool_calls(RULES, ["pay", "refund"]))
    assert with_tools["runs"] > with_tools["all"] * 0.45
    assert with_tools["refused"] > with_tools["all"] * 0.05
    assert without["runs"] < without["all"] * 0.05


@pytest.mark.parametrize(
    "tools",
    [
        [pay],
        (pay, refund),
        [agents.function_tool(pay)],
        Agent("a", "b", model=ScriptedModel(), tools=[pay]),
        {"pay": {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}},
    ],
)
def test_tools_are_functions_tools_of_the_sdk_an_agent_or_schemas(tools: Any) -> None:
    _, arguments = find(tool_calls(tools=tools, invalid=0), lambda call: call[0] == "pay", settings=SEARCH)
    assert isinstance(arguments["amount"], int)


def test_a_failing_example_shrinks_to_a_valid_and_small_call() -> None:
    call = find(
        tool_calls(RULES, tools=[pay, refund]),
        lambda call: call[0] == "pay",
        settings=settings(max_examples=5_000, database=None),
    )
    assert call == ("pay", {"amount": 1, "note": ""})


@pytest.mark.parametrize(
    ("rules", "command"),
    [({"allow": ["shell(git:*)"]}, "git"), ({"deny": ["shell(rm:*)"]}, "rm")],
)
def test_short_forms_are_about_the_parameter_of_the_tool(rules: Any, command: str) -> None:
    def shell(line: str) -> str:
        """Run."""
        return line

    strategy = tool_calls(rules, tools=[shell])
    find(strategy, lambda call: call[1].get("line", "").startswith(command), settings=SEARCH)


@expect_events("tool ran", "tool denied")
@given(
    tool_rules(tools=[pay, refund]).flatmap(
        lambda rules: st.tuples(st.just(rules), tool_calls(rules, tools=[pay, refund]))
    )
)
def test_tools_run_under_drawn_rules(drawn: Any) -> None:
    rules, call = drawn
    ToolRules.parse(rules)
    run(call, PAY, REFUND, rules=rules)


def test_rules_are_about_parameters_of_the_tools() -> None:
    find(tool_rules(tools=[pay]), lambda rules: "amount" in rules["params"].get("pay", {}), settings=SEARCH)
    find(tool_rules(tools=[LOOSE]), lambda rules: "plant" in (rules["allow"] or ()), settings=SEARCH)


@pytest.mark.parametrize("invalid", [-0.1, 1.1, True, "half", None])
def test_the_share_is_checked(invalid: Any) -> None:
    with pytest.raises(InvalidOptionError, match="invalid: must be a number from 0 to 1"):
        tool_calls(tools=[pay], invalid=invalid)


def test_tools_without_a_schema_are_an_error() -> None:
    with pytest.raises(InvalidOptionError, match="tools: no tool with a schema"):
        tool_calls(tools=[])
