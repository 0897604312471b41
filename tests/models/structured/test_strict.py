from __future__ import annotations

import copy
import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kantan_agents.models.structured import output_schema
from kantan_agents.models.structured.schemas.restoring import Restorer
from kantan_agents.models.structured.schemas.strict import restored, strict_schema
from tests.models.structured.schema_strategies import on_wire, schemas, values

TEXT = {"type": "string"}
CLOSED = {"type": "object", "additionalProperties": False, "required": [], "properties": {}}


def of(properties: Any, required: Any = (), **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), **more}


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(st.data())
def test_valid_values_survive_the_round_trip_through_strict_mode(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    before = copy.deepcopy(schema)
    strict = strict_schema(schema)
    assert schema == before
    if strict is None:
        return
    value = data.draw(values(schema))
    wire = on_wire(schema, value)
    assert jsonschema_rs.is_valid(strict, wire), strict
    filled = Restorer(schema).filled
    assert filled(restored(schema, wire)) == filled(value)
    assert jsonschema_rs.is_valid(schema, restored(schema, wire))
    assert restored(schema, value) == value


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_values_valid_in_strict_mode_are_valid_when_restored(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    ours = output_schema(schema)
    form = ours.json_schema()
    if not ours.is_strict_json_schema() or not form["properties"]:
        return
    value = data.draw(values({"$defs": {"node": {}}, **form}))
    examined = ours.examine(value)
    if not examined.problems:
        assert jsonschema_rs.is_valid(schema, examined.value)
        text = json.dumps(examined.value, ensure_ascii=False)
        assert ours.validate_json(text) == Restorer(schema).filled(examined.value)


def test_optional_properties_become_nullable_without_default() -> None:
    schema = of({"a": TEXT, "b": {**TEXT, "default": "x", "minLength": 1}}, ["a"])
    assert strict_schema(schema) == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": ["string", "null"]}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    assert restored(schema, {"a": "x", "b": None}) == {"a": "x"}


def test_a_null_that_is_a_value_is_preserved() -> None:
    nullable = {"anyOf": [TEXT, {"type": "null"}]}
    schema = of({"a": nullable, "b": {**nullable, "default": None}}, ["a"])
    assert strict_schema(schema) is not None
    assert restored(schema, {"a": None, "b": None}) == {"a": None, "b": None}


def test_a_tag_is_required() -> None:
    schema = of({"kind": {"const": "cat", "default": "cat"}})
    strict = strict_schema(schema)
    assert strict is not None
    assert strict["properties"] == {"kind": {"type": "string", "const": "cat"}}


def test_references_stay_references_even_if_recursive() -> None:
    node = of({"next": {"$ref": "#/$defs/node"}, "me": {"$ref": "#", "description": "all"}}, [])
    strict = strict_schema({**of({"first": {"$ref": "#/$defs/node"}}, ["first"]), "$defs": {"node": node}})
    assert strict is not None
    assert strict["properties"] == {"first": {"$ref": "#/$defs/node"}}
    assert strict["$defs"]["node"]["properties"] == {
        "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
        "me": {"anyOf": [{"$ref": "#"}, {"type": "null"}], "description": "all"},
    }


def test_a_reference_at_the_root_is_inlined() -> None:
    strict = strict_schema({"$ref": "#/$defs/a", "$defs": {"a": of({"b": {"$ref": "#/$defs/a"}})}})
    assert strict is not None
    assert strict["type"] == "object"
    assert strict["$defs"]["a"]["properties"] == strict["properties"]


def test_unused_definitions_are_dropped() -> None:
    strict = strict_schema({**of({"a": TEXT}), "$defs": {"b": {}}})
    assert strict is not None
    assert "$defs" not in strict


def test_supported_keywords_stay_and_others_are_dropped() -> None:
    kept = {"pattern": "^a", "format": "date"}
    schema = of(
        {"a": {**TEXT, **kept, "maxLength": 3, "examples": ["a"]}, "b": {**TEXT, "format": "uri"}}, "ab"
    )
    strict = strict_schema(schema)
    assert strict is not None
    assert strict["properties"] == {"a": {**TEXT, **kept}, "b": TEXT}
    around = strict_schema(of({"a": {**TEXT, "pattern": "(?=a)"}}, "a"))
    assert around is not None
    assert around["properties"] == {"a": TEXT}


def test_all_of_is_merged() -> None:
    schema = of({"a": {"allOf": [of({"x": TEXT}, "x"), of({"y": TEXT}, "y")]}}, "a")
    strict = strict_schema(schema)
    assert strict is not None
    assert strict["properties"]["a"]["required"] == ["x", "y"]


ONE, OTHER = of({"x": TEXT, "y": TEXT}, "x"), of({"x": TEXT}, "x")


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": TEXT},
        {"anyOf": [of({"a": TEXT}), of({"b": TEXT})]},
        {"type": ["object", "null"], "properties": {"a": TEXT}},
        True,
        {"type": "object"},
        of({"a": TEXT}, additionalProperties=True),
        of({"a": TEXT}, additionalProperties=TEXT),
        of({"a": TEXT}, patternProperties={"b": TEXT}),
        of({"a": TEXT}, ["b"]),
        of({"a": {}}),
        of({"a": True}),
        of({"a": {"type": "array"}}),
        of({"a": {"type": "array", "prefixItems": [TEXT]}}),
        of({"a": {"not": TEXT}}),
        of({"a": {"type": "thing"}}),
        of({"a": TEXT}, **{"if": {"required": ["a"]}}),
        of({"a": TEXT}, dependentRequired={"a": ["b"]}),
        of({"a": TEXT}, anyOf=[{"required": ["a"]}]),
        of({"a": {"allOf": [TEXT, {"type": "integer"}]}}),
        of({"a": {"allOf": [{**CLOSED, "properties": {"x": TEXT}}, of({"y": TEXT})]}}),
        of({"a": {"$ref": "#/$defs/none"}}),
        of({"a": {"$ref": "#/properties/b"}, "b": TEXT}),
        of({"a": {"$ref": "#/$defs/b", "minLength": 1}}, **{"$defs": {"b": TEXT}}),
        of({"a": {"$ref": "#/$defs/b"}}, **{"$defs": {"b": {"$ref": "#/$defs/b"}}}),
        of({"a": {"enum": [{"x": 1}]}}),
        # Ambiguous: null and absent, or the branches of a union.
        of({"a": {"type": ["string", "null"]}}),
        of({"a": {"type": ["string", "null"], "default": "x"}}),
        of({"a": {"anyOf": [ONE, OTHER]}}, "a"),
        of({"a": {"anyOf": [{"type": "array", "items": ONE}, {"type": "array", "items": OTHER}]}}, "a"),
    ],
)
def test_schemas_that_would_lose_information_are_not_adapted(schema: Any) -> None:
    assert strict_schema(schema) is None


def nested(levels: int) -> dict[str, Any]:
    schema = of({"a": TEXT}, "a")
    for _ in range(levels - 1):
        schema = of({"a": schema}, "a")
    return schema


def linked(levels: int) -> dict[str, Any]:
    defs = {f"d{n}": of({"a": {"$ref": f"#/$defs/d{n + 1}"}}, "a") for n in range(levels - 1)}
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{levels - 1}": of({"a": TEXT}, "a")}}


@pytest.mark.parametrize(
    ("most", "too_much"),
    [
        (nested(10), nested(11)),
        (linked(10), linked(11)),
        (linked(2), linked(3000)),
        (nested(2), nested(2000)),
        (of({str(n): TEXT for n in range(5000)}), of({str(n): TEXT for n in range(5001)})),
        (of({"a": {"enum": list(range(1000))}}), of({"a": {"enum": list(range(1001))}})),
        (of({"a" * 119_000: TEXT}), of({"a" * 120_001: TEXT})),
        (
            of({"a": {"enum": [f"{n:050}" for n in range(300)]}}),
            of({"a": {"enum": [f"{n:051}" for n in range(300)]}}),
        ),
    ],
)
def test_schemas_above_the_providers_limits_are_not_adapted(most: Any, too_much: Any) -> None:
    assert strict_schema(most) is not None
    assert strict_schema(too_much) is None


def test_limits_are_checked_before_shared_parts_are_expanded() -> None:
    shared = of({"a": TEXT})
    for _ in range(9):
        shared = of({str(n): shared for n in range(9)})
    assert strict_schema(shared) is None
    chained = {"type": "string"}
    defs = {"d0": chained}
    for n in range(1, 60):
        both = {"allOf": [{"$ref": f"#/$defs/d{n - 1}"}, {"$ref": f"#/$defs/d{n - 1}"}]}
        defs[f"d{n}"] = of({"a": both, "b": both})
    strict_schema({**of({"a": {"$ref": "#/$defs/d59"}}), "$defs": defs})


def test_a_union_is_restored_in_the_matching_branch() -> None:
    cat = of({"kind": {"const": "cat"}, "name": TEXT}, ["kind"])
    dog = of({"kind": {"const": "dog"}, "name": {"type": ["string", "null"]}}, ["kind", "name"])
    schema = of({"pets": {"type": "array", "items": {"oneOf": [cat, dog]}}}, ["pets"])
    assert strict_schema(schema) is not None
    wire = {"pets": [{"kind": "cat", "name": None}, {"kind": "dog", "name": None}]}
    assert restored(schema, wire) == {"pets": [{"kind": "cat"}, {"kind": "dog", "name": None}]}


def test_unchanged_values_are_not_copied() -> None:
    schema, value = of({"a": of({"b": TEXT})}), {"a": {"b": "x"}}
    assert restored(schema, value) is value


def test_values_of_any_depth_raise_no_error() -> None:
    schema = {"$ref": "#/$defs/n", "$defs": {"n": of({"n": {"$ref": "#/$defs/n"}, "x": TEXT})}}
    value: Any = {"x": None}
    for _ in range(5000):
        value = {"n": value}
    assert restored(schema, value) is value
    assert restored(schema, {"n": {"x": None}}) == {"n": {}}
