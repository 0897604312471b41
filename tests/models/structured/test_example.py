"""The example of a schema that the prompt form shows."""

from __future__ import annotations

import json
from datetime import date
from typing import Any, Literal

import attrs
import pytest
from pydantic import BaseModel, Field, TypeAdapter

from kantan_agents.models.structured.requests.agent_output import agent_output
from kantan_agents.models.structured.requests.forms import Delivery
from kantan_agents.models.structured.schemas.example import example_of


class Line(BaseModel):
    name: str
    price: float
    tags: list[str] = []


class Order(BaseModel):
    number: int
    day: date
    state: Literal["open", "paid"]
    lines: list[Line]
    note: str | None = None
    origin: str = Field(examples=["shop"])
    is_gift: bool = False


class Node(BaseModel):
    name: str
    children: list[Node]


class Linked(BaseModel):
    a: Linked | None
    b: Linked | None
    c: Linked | None


class Number(BaseModel):
    value: float


class Operation(BaseModel):
    left: Operation | Number
    right: Operation | Number
    more: dict[str, int] | None


@attrs.frozen
class Point:
    x: int
    y: int


def test_an_example_has_every_property_in_its_form() -> None:
    assert example_of(Order.model_json_schema()) == {
        "number": 1,
        "day": "2024-12-31",
        "state": "open",
        "lines": [{"name": "...", "price": 1.5, "tags": []}],
        "note": "...",
        "origin": "shop",
        "is_gift": False,
    }


@pytest.mark.parametrize(
    "kind",
    [
        Order,
        Line,
        Node,
        Linked,
        Operation,
        Point,
        list[int],
        int | str,
        dict[str, int],
        dict,
        Literal["a"],
    ],
)
def test_the_example_of_a_type_fits_it(kind: Any) -> None:
    schema: Any = agent_output(kind, Delivery())
    assert schema.accepts(schema.example)
    assert len(schema.example) < 10_000


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        {
            "type": ["object", "null"],
            "properties": {name: {"$ref": "#"} for name in "abc"},
            "required": [*"abc"],
        },
        {"type": "object", "properties": {name: {"$ref": "#"} for name in "abc"}, "required": [*"abc"]},
        {"type": "array", "items": {"$ref": "#"}},
        {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
        {"type": "object", "properties": {str(n): {"$ref": "#"} for n in range(30)}},
        {"$ref": "#/missing"},
        {"type": ["null", "string"]},
        {"enum": []},
        {},
    ],
    ids=lambda schema: json.dumps(schema)[:40],
)
def test_the_example_of_any_schema_is_short_json(schema: dict[str, Any]) -> None:
    assert len(json.dumps(example_of(schema))) < 50_000


def test_an_example_of_the_author_goes_first() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "default": 5, "examples": [7]}}}
    assert example_of(schema) == {"n": 7}
    assert TypeAdapter(dict[str, int]).validate_python(example_of(schema))
