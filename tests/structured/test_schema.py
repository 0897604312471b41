from __future__ import annotations

import asyncio
import copy
import dataclasses
import datetime as dt
from typing import Any

import agents
import attrs
import pytest
from agents import AgentOutputSchema
from pydantic import BaseModel

from kantan_agents import Agent
from kantan_agents.structured import OutputSchema, as_dict, output_schema
from kantan_agents.testing import ScriptedModel, assistant_message


class Event(BaseModel):
    name: str
    day: dt.date = dt.date(2026, 1, 2)


@dataclasses.dataclass
class Point:
    x: int


@attrs.frozen
class Place:
    x: int


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (Event(name="n"), {"name": "n", "day": dt.date(2026, 1, 2)}),
        (Point(1), {"x": 1}),
        (Place(1), {"x": 1}),
        ({"a": 1}, {"a": 1}),
        ("text", None),
        (None, None),
        ([1], None),
        (Event, None),
        (Point, None),
    ],
)
def test_what_is_a_dict_and_what_is_none(output: Any, expected: Any) -> None:
    assert as_dict(output) == expected


def test_for_a_trace_the_values_are_json() -> None:
    assert as_dict(Event(name="n"), json=True) == {"name": "n", "day": "2026-01-02"}


@pytest.mark.parametrize("plain", [None, str])
def test_plain_text_has_no_schema(plain: Any) -> None:
    assert output_schema(plain) is None


def test_a_schema_is_built_once_per_type() -> None:
    assert output_schema(Event) is output_schema(Event)
    assert output_schema(list[int]) is output_schema(list[int])


def test_it_is_the_sdks_schema_in_all_but_the_cost_of_its_identity() -> None:
    sdk, ours = AgentOutputSchema(Event), output_schema(Event)
    assert isinstance(ours, AgentOutputSchema)
    assert ours.json_schema() == sdk.json_schema()
    assert (ours.name(), ours.is_strict_json_schema()) == (sdk.name(), sdk.is_strict_json_schema())
    text = '{"name": "n", "day": "2026-01-02"}'
    assert ours.validate_json(text) == sdk.validate_json(text)
    assert dataclasses.asdict(ours) == {}


def test_the_users_own_schema_objects_keep_their_behaviour() -> None:
    loose = AgentOutputSchema(dict[str, int], strict_json_schema=False)
    adopted = output_schema(loose)
    assert isinstance(adopted, OutputSchema)
    assert adopted.is_strict_json_schema() is False
    assert adopted.validate_json('{"a": 1}') == {"a": 1}

    class Mine(AgentOutputSchema):
        pass

    mine = Mine(Event)
    assert output_schema(mine) is mine


def test_a_type_the_sdk_cannot_make_strict_is_its_error_when_the_agent_is_made() -> None:
    with pytest.raises(agents.UserError, match="strict"):
        Agent("a", "b", output_type=dict[str, int])


def test_an_error_handlers_list_output_is_wrapped_as_the_sdk_does() -> None:
    # The SDK asks whether a schema is an AgentOutputSchema before it wraps such an output.
    model = ScriptedModel([[assistant_message('{"response": [1]}')]])
    agent = Agent("a", "b", model=model, output_type=list[int])
    handlers = {"max_turns": lambda data: agents.RunErrorHandlerResult(final_output=[7])}
    context = agent.run("hi", max_turns=0, error_handlers=handlers)
    assert context["result"].final_output == [7]
    assert agent.run("hi")["result"].final_output == [1]


def test_a_schema_survives_copying() -> None:
    assert copy.copy(output_schema(Event)).json_schema() == output_schema(Event).json_schema()


def test_output_types_that_are_no_dict_work_and_are_not_stored() -> None:
    model = ScriptedModel([[assistant_message('{"response": [1, 2]}')]])
    agent = Agent("a", "b", model=model, output_type=list[int], output_dest="out")
    context = asyncio.run(agent.run_async("hi"))
    assert context["result"].final_output == [1, 2]
    assert "out" not in context
    assert context["history"][-1]["text"] == "[1, 2]"
