from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable
from typing import Annotated, Any, Generic, Optional, TypedDict, TypeVar, Union

import attrs
import pytest
import typing_extensions
from agents import ModelBehaviorError
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter

from kantan_agents import Agent
from kantan_agents.errors import OutputSchemaError
from kantan_agents.models.structured import as_dict, output_schema
from kantan_agents.models.structured.schemas.attrs_types import pydantic_type
from kantan_agents.testing import ScriptedModel, assistant_message

T = TypeVar("T")


@attrs.frozen
class Place:
    """Where something is."""

    _x: int = attrs.field(validator=attrs.validators.ge(0))
    name: str = attrs.field(default="here", converter=str.strip)
    tags: tuple[str, ...] = attrs.field(factory=tuple, converter=tuple)
    within: Place | None = None
    others: list[Place] = attrs.field(factory=list, kw_only=True, alias="beside")
    size: int = attrs.field(init=False, default=7)


@attrs.define
class Visit:
    day: dt.date
    place: Annotated[Place, Field(description="the place")]


@dataclasses.dataclass
class Trip:
    visits: list[Visit]
    home: Place = dataclasses.field(default_factory=lambda: Place(0))
    note: str = "none"


class Old(TypedDict, total=False):
    a: typing_extensions.Required[int]
    b: str


class Journey(typing_extensions.TypedDict):
    trip: Trip
    start: typing_extensions.NotRequired[Place | int]


@attrs.frozen
class Box(Generic[T]):
    content: T
    more: list[T] = attrs.field(factory=list)


@attrs.frozen
class Sum:
    parts: list[int]
    total: int

    def __attrs_post_init__(self) -> None:
        if sum(self.parts) != self.total:
            raise ValueError("the parts do not make the total")


@attrs.frozen
class Odd:
    call: Callable[[], int]


@attrs.frozen
class Lost:
    x: Nowhere  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("output_type", "text", "expected"),
    [
        (Place, '{"x": 1}', Place(1)),
        (Place, '{"x": 1, "name": " a ", "tags": ["b"]}', Place(1, "a", ("b",))),
        (
            Place,
            '{"x": 1, "within": {"x": 2}, "beside": [{"x": 3}]}',
            Place(1, within=Place(2), beside=[Place(3)]),
        ),
        (list[Place], '[{"x": 1}]', [Place(1)]),
        (Optional[Place], "null", None),  # noqa: UP045
        (Union[Place, int], "3", 3),  # noqa: UP007
        (
            Place | Visit,
            '{"day": "2026-01-02", "place": {"x": 1}}',
            Visit(dt.date(2026, 1, 2), Place(1)),
        ),
        (tuple[Place, ...], '[{"x": 1}]', (Place(1),)),
        (Trip, '{"visits": []}', Trip([])),
        (Box[int], '{"content": 1, "more": [2]}', Box(1, [2])),
        (Box[Place], '{"content": {"x": 1}}', Box(Place(1))),
        (Box[Box[int]], '{"content": {"content": 1}}', Box(Box(1))),
    ],
)
def test_values_are_instances_of_the_class(output_type: Any, text: str, expected: Any) -> None:
    assert output_schema(output_type).validate_json(f'{{"response": {text}}}') == expected


def test_dicts_and_typed_dicts_of_attrs_classes() -> None:
    assert output_schema(Old).validate_json('{"a": 1}') == {"a": 1}
    assert output_schema(Old).examine({"b": "x"}).problems
    assert output_schema(dict[str, Place]).validate_json('{"a": {"x": 1}}') == {"a": Place(1)}
    read = output_schema(Journey).validate_json('{"trip": {"visits": []}, "start": {"x": 4}}')
    assert read == {"trip": Trip([]), "start": Place(4)}


def test_the_schema_has_the_parameters_of_init() -> None:
    schema = output_schema(Place)
    assert (schema.name(), schema.is_strict_json_schema()) == ("Place", True)
    place = schema.plain["$defs"]["Place"]
    assert (place["title"], place["description"]) == ("Place", "Where something is.")
    assert list(place["properties"]) == ["x", "name", "tags", "within", "beside"]
    assert place["required"] == ["x"]
    assert place["properties"]["name"]["default"] == "here"
    assert "description" not in output_schema(Trip).plain["$defs"].get("Trip", {})


def test_null_in_strict_mode_becomes_the_default() -> None:
    wire = '{"response": {"x": 1, "name": null, "tags": null, "within": null, "beside": null}}'
    assert output_schema(Place).validate_json(wire) == Place(1)


@given(st.integers(0, 9), st.text("ab", max_size=3), st.booleans())
def test_serialized_values_validate_to_the_same_value(x: int, name: str, nested: bool) -> None:
    value = Box(Place(x, name, ("t",), Place(x) if nested else None, beside=[Place(1)] * nested))
    schema = output_schema(Box[Place])
    text = schema._type_adapter.dump_json({"response": value}).decode()
    assert schema.validate_json(text) == value
    assert schema.examine({"response": "x"}).problems


def test_an_error_of_a_validator_is_a_problem_with_its_path() -> None:
    examined = output_schema(list[Place]).examine([{"x": 1}, {"x": -1}, {"x": 1, "name": 3}])
    assert [str(problem) for problem in examined.problems] == [
        "[1]: '_x' must be >= 0: -1",
        "[2].name: Input should be a valid string",
    ]
    found = output_schema(Sum).examine({"response": {"parts": [1], "total": 2}})
    assert [str(problem) for problem in found.problems] == ["response: the parts do not make the total"]
    with pytest.raises(ModelBehaviorError):
        output_schema(Sum).validate_json('{"response": {"parts": [1], "total": 2}}')


@attrs.frozen
class Untyped:  # type: ignore[no-untyped-def]
    a = attrs.field()
    b = attrs.field(type=int, default=1)


def test_a_field_without_a_type_accepts_anything() -> None:
    assert output_schema(Untyped).validate_json('{"response": {"a": [1]}}') == Untyped([1], 1)


def test_a_type_error_of_the_class_is_a_problem() -> None:
    @attrs.frozen
    class Checked:
        a: Any = attrs.field(validator=attrs.validators.instance_of(str))

    (problem,) = output_schema(Checked).examine({"a": 1}).problems
    assert problem.path == ""
    assert problem.message.startswith("'a' must be <class 'str'>")


@pytest.mark.parametrize(("output_type", "named"), [(Odd, "Callable"), (Lost, "Nowhere")])
def test_an_unsupported_type_is_an_error_that_names_it(output_type: Any, named: str) -> None:
    with pytest.raises(
        OutputSchemaError, match=f"{output_type.__name__} cannot be an output type: .*{named}"
    ):
        Agent("a", "b", output_type=output_type)


def test_types_without_attrs_classes_are_left_to_pydantic() -> None:
    class Model(BaseModel):
        x: int

    @dataclasses.dataclass
    class Plain:
        x: list[int]

    for output_type in (Model, Plain, list[int], dict[str, Any], int | None, Callable[[int], int], int):
        assert pydantic_type(output_type) is output_type


def test_a_class_with_a_custom_schema_keeps_it() -> None:
    @attrs.frozen
    class Own:
        x: int

        @classmethod
        def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
            return handler(int)

    assert TypeAdapter(pydantic_type(list[Own])).validate_python([1]) == [1]


def test_a_result_is_stored_as_plain_dicts() -> None:
    reply = '{"response": {"visits": [{"day": "2026-01-02", "place": {"x": 1, "beside": [{"x": 2}]}}]}}'
    model = ScriptedModel([[assistant_message(reply)]])
    context = Agent("a", "b", model=model, output_type=Trip, output_dest="trip").run("hi")
    assert isinstance(context["result"].final_output, Trip)
    (visit,) = context["trip"]["visits"]
    assert visit["day"] == dt.date(2026, 1, 2)
    assert visit["place"]["others"][0]["_x"] == 2
    assert as_dict(context["result"].final_output, json=True)["visits"][0]["day"] == "2026-01-02"
