"""Final outputs of any type as plain data: in the context, in the history, in traces and events."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import json
import pathlib
import types
import uuid
from collections.abc import Iterable
from typing import Annotated, Any, Literal, NamedTuple

import anyio
import attrs
import pytest
from agents import AgentOutputSchema
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Json,
    RootModel,
    SecretStr,
    create_model,
    field_serializer,
)

from kantan_agents import Agent, to_provider_response
from kantan_agents.core.events import RunFinished
from kantan_agents.errors import OutputSchemaError
from kantan_agents.models.structured import as_dict, json_data, output_schema
from kantan_agents.testing import ScriptedModel, assistant_message

UUID = "12345678-1234-5678-1234-567812345678"


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1


class Number(enum.Enum):
    ONE = 1


class Point(BaseModel):
    model_config = ConfigDict(frozen=True)
    x: int


class Points(BaseModel):
    points: set[Point]


class Pair(NamedTuple):
    first: int
    second: int


class Tree(BaseModel):
    count: dict[Color, int]
    children: list[Tree] = []


class Packed(BaseModel):
    model_config = ConfigDict(val_json_bytes="base64")
    data: bytes


class Broken(BaseModel):
    name: str

    @field_serializer("name")
    def _fail(self, _value: str) -> str:
        raise RuntimeError("no")


@dataclasses.dataclass
class Report:
    days: dict[dt.date, int]


@attrs.define
class Summary:
    colors: dict[Color, int]


KEYS: dict[Any, str] = {
    Color: "red",
    Level: "1",
    dt.date: "2026-01-31",
    dt.timedelta: "PT1S",
    uuid.UUID: UUID,
    decimal.Decimal: "1.50",
    pathlib.PurePosixPath: "a/b",
    bytes: "ab",
    int: "1",
    float: "1.5",
    bool: "true",
    Literal["a", "b"]: "a",
    int | None: "1",
    Json[tuple[int, int]]: "[1,2]",
}
UNREADABLE_KEYS = [
    tuple[int, int],
    frozenset[int],
    None,
    Point,
    Report,
    Pair,
    Number,
    Literal[1],
    tuple[int, ...] | frozenset[str],
]


async def answered(output_type: Any, reply: Any) -> Any:
    """Return the context of a run whose model gives one reply."""
    model = ScriptedModel([[assistant_message(json.dumps(reply))]])
    agent = Agent("a", "b", model=model, output_type=output_type, output_dest="out", output_repairs=0)
    return await agent.run_async("Go")


@pytest.mark.parametrize(("key", "text"), KEYS.items(), ids=str)
async def test_keys_of_any_type_land_in_context_and_history_as_text(key: Any, text: str) -> None:
    context = await answered(dict[key, int], {text: 1})
    shown = "1,2" if text == "[1,2]" else text
    assert context["out"] == {shown: 1}
    assert json.loads(context["history"][-1]["text"]) == {shown: 1}


@pytest.mark.parametrize(
    ("output_type", "reply"),
    [
        (Tree, {"count": {"red": 1}, "children": [{"count": {"blue": 2}, "children": []}]}),
        (Report, {"response": {"days": {"2026-01-31": 1}}}),
        (Summary, {"response": {"colors": {"red": 1}}}),
        (dict[str, dict[Color, int]], {"a": {"red": 1}}),
        (RootModel[dict[Color, int]], {"red": 1}),
        (Points, {"points": [{"x": 1}]}),
    ],
    ids=str,
)
async def test_keys_become_text_at_every_depth(output_type: Any, reply: dict[str, Any]) -> None:
    context = await answered(output_type, reply)
    expected = reply.get("response", reply)
    assert context["out"] == expected
    assert json.loads(context["history"][-1]["text"]) == expected


async def test_values_in_the_context_stay_values_of_the_type() -> None:
    context = await answered(dict[str, dt.date], {"a": "2026-01-31"})
    assert context["out"] == {"a": dt.date(2026, 1, 31)}
    assert context["history"][-1]["text"] == '{"a": "2026-01-31"}'


@pytest.mark.parametrize("key", UNREADABLE_KEYS, ids=str)
def test_a_type_with_keys_that_are_no_text_is_refused_before_any_request(key: Any) -> None:
    for output_type in (
        dict[key, int],
        list[dict[str, dict[key, int]]],
        AgentOutputSchema(dict[key, int], strict_json_schema=False),
    ):
        with pytest.raises(OutputSchemaError, match="keys of a JSON object are text"):
            Agent("a", "b", output_type=output_type)


def test_a_type_that_can_be_read_only_once_is_refused_before_any_request() -> None:
    with pytest.raises(OutputSchemaError, match=r"only once.*use list"):
        Agent("a", "b", output_type=dict[str, Iterable[int]])


async def test_a_validator_may_read_such_keys() -> None:
    def split(key: Any) -> Any:
        return tuple(map(int, key.split(","))) if isinstance(key, str) else key

    context = await answered(dict[Annotated[tuple[int, int], BeforeValidator(split)], int], {"1,2": 3})
    assert context["out"] == {"1,2": 3}


@pytest.mark.parametrize(
    ("output_type", "reply", "text"),
    [
        (list[dict[Color, int]], [{"red": 1}], '[{"red": 1}]'),
        (list[Point], [{"x": 1}], '[{"x": 1}]'),
        (set[int], [1], "[1]"),
        (bool, True, "true"),
        (decimal.Decimal, "1.50", "1.50"),
        (dt.date, "2026-01-31", "2026-01-31"),
        (Color, "red", "red"),
    ],
    ids=str,
)
async def test_an_output_that_is_no_object_is_json_in_the_history(
    output_type: Any, reply: Any, text: str
) -> None:
    context = await answered(output_type, {"response": reply})
    assert context["history"][-1]["text"] == text
    assert "out" not in context


async def test_values_without_a_json_form_do_not_fail_a_run_that_has_its_answer() -> None:
    context = await answered(Packed, {"data": "/////w=="})
    assert context["out"] == {"data": b"\xff\xff\xff\xff"}
    assert json.loads(context["history"][-1]["text"]) == {"data": "_____w=="}
    assert (await answered(Broken, {"name": "x"}))["out"] == {"name": "x"}
    assert (await answered(dict[str, float], {"a": float("nan")}))["history"][-1]["text"] == '{"a": null}'
    secret = (await answered(dict[str, SecretStr], {"a": "hunter2"}))["history"][-1]["text"]
    assert secret == '{"a": "**********"}'


async def test_traces_events_and_provider_responses_get_the_same_data(traces: Any) -> None:
    finished: list[Any] = []
    model = ScriptedModel([[assistant_message('{"response": [{"red": 1}]}')]])
    agent = Agent("a", "b", model=model, output_type=list[dict[Color, int]])
    with agent.subscribe(lambda e: finished.append(e) if isinstance(e, RunFinished) else None):
        context = await agent.run_async("Go")
    assert finished[0].output == [{"red": 1}]
    assert to_provider_response(context).segments[0].text == '[{"red": 1}]'
    outputs = [span.raw["span_data"].get("output") for span in traces.spans(span_type="generation")]
    assert [{"red": 1}] in outputs


def test_a_value_that_contains_itself_becomes_text() -> None:
    loop: dict[str, Any] = {}
    loop["self"] = loop
    assert json_data(loop) == "{'self': {...}}"
    assert as_dict(loop) is loop
    assert as_dict(loop, json=True) is None


def test_keys_that_become_equal_are_logged(caplog: Any) -> None:
    assert as_dict({1: "a", "1": "b"}) == {"1": "b"}
    (record,) = [one for one in caplog.records if one.message == "keys_became_equal"]
    assert record.count == 1


# A property over generated types.

_SCALARS: dict[Any, Any] = {
    str: "x",
    int: 1,
    float: 1.5,
    bool: True,
    decimal.Decimal: "1.5",
    dt.datetime: "2026-01-31T00:00:00Z",
    dt.timedelta: "PT1S",
    uuid.UUID: UUID,
    bytes: "x",
    SecretStr: "x",
    pathlib.PurePosixPath: "a/b",
    Color: "red",
    Number: 1,
    Any: {"a": None},
    set[Point]: [{"x": 1}],
    frozenset[int]: [1],
    Tree: {"count": {"red": 1}, "children": []},
    Packed: {"data": "/////w=="},
    Iterable[int]: [1],
}
_ALL_KEYS: dict[Any, str] = {**KEYS, **dict.fromkeys(UNREADABLE_KEYS, "1")}
Sample = tuple[Any, Any]


def _dict_of(key: Any, inner: Sample) -> Sample:
    return types.GenericAlias(dict, (key, inner[0])), {_ALL_KEYS[key]: inner[1]}


def _model_of(inner: Sample) -> Sample:
    made: Any = create_model("Made", field=(inner[0], ...))
    return made, {"field": inner[1]}


def _dataclass_of(inner: Sample) -> Sample:
    return dataclasses.make_dataclass("Made", [("field", inner[0])]), {"field": inner[1]}


SAMPLES: st.SearchStrategy[Sample] = st.recursive(
    st.sampled_from([*_SCALARS.items()]),
    lambda inner: st.one_of(
        st.builds(_dict_of, st.sampled_from([*_ALL_KEYS]), inner),
        st.builds(_model_of, inner),
        st.builds(_dataclass_of, inner),
        inner.map(lambda sample: (types.GenericAlias(list, sample[0]), [sample[1]])),
        inner.map(lambda sample: (sample[0] | None if sample[0] is not Any else Any, sample[1])),
        inner.map(lambda sample: (types.GenericAlias(tuple, (sample[0], int)), [sample[1], 1])),
    ),
    max_leaves=4,
)


def _only_text_keys(value: Any) -> bool:
    if isinstance(value, dict):
        return all(type(key) is str and _only_text_keys(inner) for key, inner in value.items())
    return not isinstance(value, (list, tuple)) or all(map(_only_text_keys, value))


def _no_constant(name: str) -> Any:
    raise AssertionError(f"{name} is not JSON")


@given(SAMPLES)
def test_a_type_is_refused_or_its_values_reach_context_and_history(sample: Sample) -> None:
    output_type, reply = sample
    try:
        schema: Any = output_schema(output_type)
    except OutputSchemaError:
        return
    text = "x" if schema is None else json.dumps({"response": reply} if schema.is_wrapped else reply)
    model = ScriptedModel([[assistant_message(text)]])
    agent = Agent("a", "b", model=model, output_type=output_type, output_dest="out", output_repairs=0)
    context: Any = anyio.run(agent.run_async, "Go")
    assert json.loads(json.dumps(context["history"]))[-1]["role"] == "assistant"
    assert _only_text_keys(context.get("out"))
    data = json_data(context["result"].final_output)
    assert json.loads(json.dumps(data, allow_nan=False), parse_constant=_no_constant) == data
