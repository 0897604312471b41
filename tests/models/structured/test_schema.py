from __future__ import annotations

import asyncio
import copy
import dataclasses
import datetime as dt
import decimal
import enum
import json
import uuid
from collections.abc import Callable
from typing import Annotated, Any, Literal

import agents
import attrs
import pydantic
import pytest
from agents import AgentOutputSchema, ModelBehaviorError
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from typing_extensions import NotRequired, TypedDict

from kantan_agents import Agent
from kantan_agents.errors import OutputSchemaError
from kantan_agents.models.structured import OutputSchema, as_dict, output_schema
from kantan_agents.testing import OfflineServer, ScriptedModel, assistant_message


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
def test_outputs_with_fields_become_dicts(output: Any, expected: Any) -> None:
    assert as_dict(output) == expected


def test_values_for_a_trace_are_json() -> None:
    assert as_dict(Event(name="n"), json=True) == {"name": "n", "day": "2026-01-02"}


@pytest.mark.parametrize("plain", [None, str])
def test_plain_text_has_no_schema(plain: Any) -> None:
    assert output_schema(plain) is None


def test_a_schema_is_built_once_per_type() -> None:
    assert output_schema(Event) is output_schema(Event)
    assert output_schema(list[int]) is output_schema(list[int])


def test_it_behaves_like_the_sdks_schema_with_a_cheap_identity() -> None:
    sdk, ours = AgentOutputSchema(Event), output_schema(Event)
    assert isinstance(ours, AgentOutputSchema)
    assert (ours.name(), ours.is_strict_json_schema()) == (sdk.name(), sdk.is_strict_json_schema())
    text = '{"name": "n", "day": "2026-01-02"}'
    assert ours.validate_json(text) == sdk.validate_json(text)
    assert dataclasses.asdict(ours) == {}


def test_custom_schema_objects_keep_their_behaviour() -> None:
    loose = AgentOutputSchema(dict[str, int], strict_json_schema=False)
    adopted = output_schema(loose)
    assert isinstance(adopted, OutputSchema)
    assert adopted.is_strict_json_schema() is False
    assert adopted.validate_json('{"a": 1}') == {"a": 1}

    class Mine(AgentOutputSchema):
        pass

    mine = Mine(Event)
    assert output_schema(mine) is mine


def test_without_defaults_the_schema_equals_the_sdks() -> None:
    class Item(BaseModel):
        name: str
        price: float | None

    class Bill(BaseModel):
        items: list[Item]
        paid: bool

    assert output_schema(Bill).json_schema() == AgentOutputSchema(Bill).json_schema()
    assert output_schema(list[Bill]).name() == AgentOutputSchema(list[Bill]).name()


@pytest.mark.parametrize(
    ("output_type", "value"),
    [
        (dict, {"a": [1]}),
        (dict[str, int], {"a": 1}),
        (dict[str, Any], {"a": None}),
        (Any, [1, None]),
        (tuple[int, str], (1, "a")),
    ],
)
def test_a_type_that_strict_mode_cannot_express_works_without_it(output_type: Any, value: Any) -> None:
    schema = output_schema(output_type)
    text = json.dumps(value if isinstance(value, dict) else {"response": value})
    model = ScriptedModel([[assistant_message(text)]])
    context = Agent("a", "b", model=model, output_type=output_type).run("hi")
    assert context["result"].final_output == value
    assert not schema.is_strict_json_schema()
    assert schema.json_schema() == schema.plain


class Animal(BaseModel):
    kind: Literal["cat", "dog"]
    legs: int = 4


class Cat(Animal):
    kind: Literal["cat"] = "cat"
    lives: int = pydantic.Field(default=9, ge=1)


class Dog(Animal):
    kind: Literal["dog"] = "dog"
    tricks: list[str] = pydantic.Field(default_factory=list, max_length=2)


class Tree(BaseModel):
    value: Cat | Dog
    branches: list[Tree] = pydantic.Field(default_factory=list)
    parent: Tree | None = None


class Level(enum.Enum):
    LOW = "low"
    HIGH = 2


@dataclasses.dataclass
class Record:
    level: Level
    when: dt.datetime
    spent: dt.timedelta
    key: uuid.UUID
    price: decimal.Decimal
    ids: set[int] = dataclasses.field(default_factory=set)
    names: frozenset[str] = frozenset()


class Row(TypedDict):
    id: int
    note: NotRequired[str]


ALL_TYPES: list[Any] = [
    *(Event, Point, Tree, Cat, Level, Record, Row, int, float, bool, bytes, dt.date, decimal.Decimal),
    *(list[Cat | Dog], Cat | Dog | None, int | str, list[Tree], set[int], Literal["a", 1], Row | None),
]


def compared(output_type: Any, text: str) -> None:
    sdk, ours = AgentOutputSchema(output_type), output_schema(output_type)
    try:
        expected = sdk.validate_json(text)
    except ModelBehaviorError:
        return
    assert repr(ours.validate_json(text)) == repr(expected)


TEXTS = [
    "null",
    "3",
    '"3"',
    "true",
    "[1, 1]",
    "NaN",
    '"2026-01-02"',
    '"a"',
    '"low"',
    '{"kind": "cat"}',
    '{"kind": "dog", "tricks": ["sit"], "legs": 3}',
    '{"id": 1, "note": "x", "more": 1}',
    '[{"kind": "dog"}, {"lives": 1, "tricks": []}]',
    '{"value": {"kind": "cat"}, "branches": [{"value": {"kind": "dog"}, "parent": null}]}',
    (
        '{"level": 2, "when": "2026-01-02T03:04:05Z", "spent": "PT3S", "price": 1.10,'
        ' "key": "12345678123456781234567812345678", "ids": [1, 1], "names": ["a"]}'
    ),
]


@pytest.mark.parametrize("output_type", ALL_TYPES, ids=str)
def test_values_the_sdk_accepts_are_accepted_unchanged(output_type: Any) -> None:
    for text in TEXTS:
        compared(output_type, text)
        compared(output_type, f'{{"response": {text}}}')


@given(st.data())
def test_a_value_without_problems_is_valid_for_the_sdk(data: st.DataObject) -> None:
    output_type = data.draw(st.sampled_from(ALL_TYPES))
    texts = st.sampled_from(TEXTS).map(json.loads)
    value = data.draw(
        texts | st.fixed_dictionaries({"value": texts, "branches": st.lists(texts, max_size=2)})
    )
    schema = output_schema(output_type)
    examined = schema.examine(value)
    text = json.dumps(examined.value, ensure_ascii=False)
    if examined.problems:
        assert examined.value == value or value != value
        assert all(str(problem) for problem in examined.problems)
    else:
        schema.validate_json(text)
        compared(output_type, text)
    assert schema.accepts(text) is not bool(examined.problems)


def test_null_for_an_optional_property_becomes_its_default() -> None:
    wire = {
        "value": {"kind": "cat", "legs": None, "lives": None},
        "branches": [{"value": {"kind": "dog", "legs": 3, "tricks": None}, "branches": None, "parent": None}],
        "parent": None,
    }
    model = ScriptedModel([[assistant_message(json.dumps(wire))]])
    agent = Agent("a", "b", model=model, output_type=Tree)
    expected = Tree(value=Cat(), branches=[Tree(value=Dog(legs=3))])
    assert agent.run("hi")["result"].final_output == expected
    examined = output_schema(Tree).examine(wire)
    assert examined.problems == ()
    assert examined.value["branches"] == [{"value": {"kind": "dog", "legs": 3}, "parent": None}]


@pytest.mark.parametrize(
    ("output_type", "reply", "expected"),
    [
        (Cat, '{"kind": "cat", "legs": 3, "lives": null}', Cat(legs=3)),
        (Point, '{"response": {"x": 1}}', Point(1)),
        (Row, '{"id": 1, "note": null}', {"id": 1}),
        (Place, '{"response": {"x": 1}}', Place(1)),
        (list[Place], '{"response": [{"x": 1}]}', [Place(1)]),
        (Cat | Dog, '{"response": {"kind": "dog", "legs": null, "tricks": null}}', Dog()),
        (Row | None, '{"response": null}', None),
        (Level, '{"response": 2}', Level.HIGH),
        ({"type": "integer"}, '{"response": 2}', 2),
    ],
)
def test_every_kind_of_type_survives_strict_mode(output_type: Any, reply: str, expected: Any) -> None:
    with OfflineServer([reply]) as server:
        agent = Agent("a", "b", model=server.bundle(api="responses"), output_type=output_type)
        assert agent.run("hi")["result"].final_output == expected
        form = server.requests[0].body["text"]["format"]
    assert form["strict"] is True
    assert form["schema"] == output_schema(output_type).json_schema()


def test_a_schema_with_ambiguous_null_is_not_strict() -> None:
    class Limit(BaseModel):
        most: int | None = 10

    schema = output_schema(Limit)
    assert not schema.is_strict_json_schema()
    assert schema.json_schema()["properties"]["most"]["default"] == 10
    assert (schema.validate_json("{}"), schema.validate_json('{"most": null}')) == (Limit(), Limit(most=None))


def test_null_is_accepted_even_if_the_schema_is_not_strict() -> None:
    class Mixed(BaseModel):
        free: dict[str, int]
        count: int = 1

    assert output_schema(Mixed).validate_json('{"free": {}, "count": null}') == Mixed(free={})


def test_the_schema_for_a_tool_or_a_prompt_is_unadapted() -> None:
    plain = output_schema(Event).plain
    assert (plain["required"], plain["properties"]["day"]["default"]) == (["name"], "2026-01-02")


def test_a_bare_value_is_wrapped_if_the_schema_wraps() -> None:
    schema = output_schema(list[Event])
    assert schema.examine([{"name": "n"}]).value == {"response": [{"name": "n"}]}
    assert schema.examine({"response": [{"name": "n"}]}).value == {"response": [{"name": "n"}]}
    (problem,) = schema.examine([{"name": 1}]).problems
    assert str(problem) == "[0].name: Input should be a valid string"
    (problem,) = schema.examine({"response": [{}]}).problems
    assert str(problem) == "response[0].name: Field required"


def test_a_value_with_a_field_named_response_is_found() -> None:
    @dataclasses.dataclass
    class Answer:
        response: str

    schema = output_schema(Answer)
    for value in ({"response": "x"}, {"response": {"response": "x"}}):
        examined = schema.examine(value)
        assert examined.problems == ()
        assert schema.validate_json(json.dumps(examined.value)) == Answer("x")


def test_an_error_of_a_custom_validator_is_a_problem() -> None:
    class Even(BaseModel):
        n: int

        @pydantic.field_validator("n")
        @classmethod
        def check(cls, n: int) -> int:
            if n % 2:
                raise ValueError("must be even")
            return n

    assert [str(p) for p in output_schema(Even).examine({"n": 1}).problems] == [
        "n: Value error, must be even"
    ]


class Strange:
    pass


@pytest.mark.parametrize(
    ("output_type", "reason"),
    [
        (Strange, "Strange cannot be an output type: Unable to generate"),
        (list[Strange], "Strange"),
        (Callable[[], int], "Callable"),
        (lambda: 1, "it is a function; give a type"),
        (len, "it is a function"),
        (5, "5 cannot be an output type"),
        (list["Nowhere"], "not fully defined"),  # type: ignore[name-defined]  # noqa: F821
        (Annotated[Strange, []], "Strange"),
    ],
)
def test_a_type_without_a_schema_is_an_error_when_the_agent_is_created(output_type: Any, reason: str) -> None:
    with pytest.raises(OutputSchemaError, match=reason) as caught:
        Agent("a", "b", output_type=output_type)
    assert caught.value.code == "E41"
    assert "http" not in str(caught.value)


def test_an_adopted_strict_schema_is_adapted() -> None:
    adopted = output_schema(AgentOutputSchema(Event))
    assert adopted.json_schema() == output_schema(Event).json_schema()
    assert adopted.validate_json('{"name": "n", "day": null}') == Event(name="n")


def test_an_adopted_schema_that_cannot_be_adapted_stays_unchanged() -> None:
    class Limit(BaseModel):
        most: int | None = 10

    sdk = AgentOutputSchema(Limit)
    adopted = output_schema(sdk)
    assert (adopted.json_schema(), adopted.is_strict_json_schema()) == (sdk.json_schema(), True)
    assert adopted.validate_json('{"most": null}') == Limit(most=None)


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


def test_outputs_that_are_not_dicts_are_not_stored() -> None:
    model = ScriptedModel([[assistant_message('{"response": [1, 2]}')]])
    agent = Agent("a", "b", model=model, output_type=list[int], output_dest="out")
    context = asyncio.run(agent.run_async("hi"))
    assert context["result"].final_output == [1, 2]
    assert "out" not in context
    assert context["history"][-1]["text"] == "[1, 2]"


class Counted(BaseModel):
    count: int
    share: float
    parts: list[int] = []


@pytest.mark.parametrize("is_strict", [True, False])
def test_an_integer_may_be_written_with_a_zero_fraction(is_strict: bool) -> None:
    schema = output_schema(Counted if is_strict else AgentOutputSchema(Counted, strict_json_schema=False))
    assert isinstance(schema, OutputSchema)
    examined = schema.examine({"count": 2.0, "share": 1.0, "parts": [1.0, 2]})
    assert examined.problems == ()
    fitting = schema.validate_json(json.dumps(examined.value))
    assert fitting == Counted(count=2, share=1.0, parts=[1, 2])
    assert schema.examine({"count": 2.5, "share": 1.0, "parts": []}).problems
