from __future__ import annotations

import json
from typing import Any

import pytest
from agents import ModelBehaviorError
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import Agent
from kantan_agents.errors import OutputSchemaError
from kantan_agents.models.structured import output_schema
from kantan_agents.testing import OfflineServer, ScriptedModel, assistant_message
from kantan_agents.testing.strategies import json_values

ORDER: dict[str, Any] = {
    "title": "order",
    "type": "object",
    "properties": {
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"price": {"type": "number"}, "count": {"type": "integer", "default": 1}},
                "required": ["price"],
            },
        },
        "day": {"type": "string", "format": "date"},
    },
    "required": ["items"],
}
LIST = {"type": "array", "items": {"type": "integer"}}


def test_a_json_schema_is_an_output_type() -> None:
    reply = '{"items": [{"price": 1.5, "count": null}], "day": null}'
    model = ScriptedModel([[assistant_message(reply)]])
    context = Agent("a", "b", model=model, output_type=ORDER, output_dest="order").run("hi")
    assert context["order"] == {"items": [{"price": 1.5, "count": 1}]}


def test_the_provider_gets_the_strict_form() -> None:
    with OfflineServer(['{"items": [], "day": null}']) as server:
        context = Agent("a", "b", model=server.bundle(api="responses"), output_type=ORDER).run("hi")
        form = server.requests[0].body["text"]["format"]
    assert context["result"].final_output == {"items": []}
    assert (form["strict"], form["schema"]["required"]) == (True, ["items", "day"])
    assert "default" not in json.dumps(form["schema"])


def test_a_schema_of_other_values_is_wrapped() -> None:
    schema = output_schema(LIST)
    assert (schema.is_wrapped, schema.is_strict_json_schema(), schema.name()) == (True, True, "output")
    assert schema.validate_json('{"response": [1]}') == [1]
    assert schema.examine([1]).value == {"response": [1]}
    assert [str(problem) for problem in schema.examine([1, "x"]).problems] == [
        '[1]: Input is not of type "integer"'
    ]


def test_the_name_of_a_schema_is_its_title() -> None:
    assert output_schema(ORDER).name() == "order"


def test_problems_contain_paths_but_no_values() -> None:
    value = {"items": [{"price": "SECRET"}, {}], "day": "SECRET"}
    problems = [str(problem) for problem in output_schema(ORDER).examine(value).problems]
    assert sorted(problems) == [
        'day: Input is not a "date"',
        'items[0].price: Input is not of type "number"',
        "items[1].price: Field required",
    ]
    with pytest.raises(ModelBehaviorError):
        output_schema(ORDER).validate_json(json.dumps(value))


def test_later_changes_of_the_dict_have_no_effect() -> None:
    mine = json.loads(json.dumps(ORDER))
    schema = output_schema(mine)
    mine["required"].append("day")
    assert schema.examine({"items": []}).problems == ()
    assert output_schema(ORDER) is schema
    assert output_schema(mine) is not schema


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "array", "items": {"$ref": "#"}}, [[], [[]]]),
        (
            {"anyOf": [{"type": "object", "properties": {"enum": {"$ref": "#"}}}, {"type": "null"}]},
            {"enum": None},
        ),
        ({"type": "array", "items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "integer"}}}, [1]),
        ({"$ref": "#/definitions/n", "definitions": {"n": {"type": "integer"}}}, 1),
        (
            {
                "$defs": {"output": {"type": "null"}},
                "items": {"$ref": "#/$defs/output"},
                "not": {"$ref": "#/items"},
            },
            [None],
        ),
        ({"enum": ["a", 1, None]}, None),
        ({}, {"any": "thing"}),
    ],
)
def test_references_resolve_in_a_wrapped_schema(schema: Any, value: Any) -> None:
    wrapped = output_schema({"$id": "urn:x", **schema})
    assert wrapped.validate_json(json.dumps({"response": value})) == value


def test_a_schema_that_refers_to_its_root_can_be_strict() -> None:
    assert output_schema({"type": "array", "items": {"$ref": "#"}}).is_strict_json_schema()


def test_an_object_by_reference_or_by_its_properties_is_not_wrapped() -> None:
    named = {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties": {"b": {"$ref": "#"}}}}}
    assert output_schema(named).validate_json('{"b": {}}') == {"b": {}}
    untyped = output_schema({"properties": {"a": {"type": "integer"}}})
    assert not untyped.is_wrapped
    assert untyped.examine([]).problems


def test_the_schema_selects_its_draft() -> None:
    draft7 = {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "integer"}]}
    schema = output_schema({**draft7, "type": "array"})
    assert schema.examine(["x"]).problems
    assert schema.examine([1, "x"]).problems == ()


def looped() -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    schema["properties"] = {"a": schema}
    return schema


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"properties": {"a": {"type": "txt"}}}, 'properties.a.type: "txt" is not'),
        ({"properties": {"a": {"pattern": "(?=a)"}}}, "properties.a.pattern"),
        ({"properties": {"a": {"$ref": "https://example.com/a.json"}}}, "remote references are not fetched"),
        ({"$ref": "other.json"}, "other.json"),
        ({"$ref": "#/$defs/a"}, "'/\\$defs/a' does not exist"),
        ({"$ref": "#"}, "# refers only to itself"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, "refers only to itself"),
        ({"$schema": "https://example.com/mine"}, "example.com/mine"),
        ({"const": float("nan")}, "not JSON"),
        ({"const": {1, 2}}, "not JSON"),
        ({"const": "\ud800"}, "not JSON"),
        ({"properties": {1: {}}}, "the key 1 is not a str"),
        (looped(), "not JSON"),
    ],
)
def test_an_invalid_schema_is_an_error_with_the_reason(schema: Any, reason: str) -> None:
    with pytest.raises(OutputSchemaError, match=f"the JSON schema cannot be an output type: .*{reason}"):
        Agent("a", "b", output_type=schema)


def test_the_error_contains_the_title() -> None:
    with pytest.raises(OutputSchemaError, match="the JSON schema 'order' cannot"):
        output_schema({"title": "order", "type": "txt"})


def test_patterns_match_in_linear_time() -> None:
    schema = output_schema({"type": "string", "pattern": "^(a+)+$"})
    assert schema.examine("a" * 50_000 + "b").problems


@given(
    json_values() | st.sampled_from([float("nan"), 10**40, "\ud800", {1: 2}, {"a": object()}, {"items": b""}])
)
def test_examining_any_value_raises_nothing(value: Any) -> None:
    for output_type in (ORDER, LIST, {}, list[int], dict, dict[str, float], int):
        schema = output_schema(output_type)
        examined = schema.examine(value)
        if not examined.problems:
            schema.validate_json(json.dumps(examined.value, ensure_ascii=False))


def test_examining_a_deep_or_recursive_value_raises_nothing() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    endless: list[Any] = []
    endless.append(endless)
    for value in (deep, endless, [[]] * 3, 10**5000):
        assert output_schema(LIST).examine(value).problems
