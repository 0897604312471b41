"""Parameter rules follow JSON Schema 2020-12; the reference is the ``jsonschema`` package."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from kantan_agents.errors import (
    PARAMETER_ERRORS,
    InvalidToolRulesError,
    ToolInputError,
    ToolParameterError,
    ToolParameterTypeError,
)
from kantan_agents.testing.strategies import json_values
from kantan_agents.tool_rules import Decision, ParameterChecks, ToolFacts, ToolRules, decide_call
from kantan_agents.tool_rules.decide import schema_of
from kantan_agents.tool_rules.keywords import TYPES
from kantan_agents.tool_rules.parameters import parse_path

whole = st.integers(-5, 5) | st.sampled_from([2**53, 2**53 + 1, -(2**63) - 1, 2**64, 10**30, 10**400])
numbers = whole | st.floats(-5, 5) | st.floats(allow_nan=False, allow_infinity=False)
lengths = st.integers(0, 5) | st.sampled_from([2.0, 0.0, 10**30])
texts = st.text("ab019 _-./@\né漢\N{MATHEMATICAL SCRIPT SMALL X}", max_size=6)
# ECMAScript patterns, with the equivalent Python expressions for the reference.
BLANK = "[\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]"
PATTERNS = {
    "": "",
    "a": "a",
    "^a": "^a",
    "b$": r"b\Z",
    "^[a-z]+$": r"^[a-z]+\Z",
    "^(a|b)*$": r"^(a|b)*\Z",
    r"\d": "[0-9]",
    r"^\w+@\w+\.\w+$": r"(?a)^\w+@\w+\.\w+\Z",
    r"^\s*$": rf"^{BLANK}*\Z",
    "^[^/]*/[^/]*$": r"^[^/]*/[^/]*\Z",
    "a{2,3}": "a{2,3}",
    r"^(?:0|[1-9]\d*)$": r"(?a)^(?:0|[1-9]\d*)\Z",
    r"\.": r"\.",
    "^.?$": r"^.?\Z",
    "(?:)": "(?:)",
    r"[\w.-]+": r"(?a)[\w.-]+",
    "é|漢": "é|漢",
}


def respelled(value: Any) -> st.SearchStrategy[Any]:
    """Values that may or may not be equal in Python and in JSON."""
    if isinstance(value, bool):
        return st.sampled_from([value, int(value), float(value), str(value).lower()])
    if isinstance(value, (int, float)):
        same = [value, str(value), [value], bool(value), value + 1]
        if abs(value) < 2**53:
            same += [float(value), int(value)]
        return st.sampled_from(same)
    if isinstance(value, list):
        return st.tuples(*map(respelled, value)).map(list)
    if isinstance(value, dict):
        turned_round = st.fixed_dictionaries({key: respelled(value[key]) for key in reversed(value)})
        return turned_round | st.just({**value, "more": 1})
    return st.just(value)


values = json_values(max_leaves=4) | texts | numbers
enums = st.lists(values, min_size=1, max_size=3)
all_keywords = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(TYPES)
        | st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True),
        "enum": enums,
        "minLength": lengths,
        "maxLength": lengths,
        "pattern": st.sampled_from(list(PATTERNS)),
        "minimum": numbers,
        "maximum": numbers,
    },
)


def rules_for(path: str, keywords: dict[str, Any]) -> ToolRules:
    return ToolRules.parse({"params": {"tool": {path: keywords}}})


def decided(path: str, keywords: dict[str, Any], arguments: Any, schema: Any = None) -> Decision:
    return decide_call(rules_for(path, keywords), ToolFacts(("tool",), schema=schema or {}), arguments)


def keeps(keywords: dict[str, Any], value: Any) -> bool:
    return decided("value", keywords, {"value": value}).allowed


def is_valid(keywords: dict[str, Any], value: Any) -> bool:
    if "pattern" in keywords:
        keywords = {**keywords, "pattern": PATTERNS[keywords["pattern"]]}
    return bool(Draft202012Validator(keywords).is_valid(value))


def broken(path: str, keywords: dict[str, Any], arguments: Any, schema: Any = None) -> ToolParameterError:
    decision = decided(path, keywords, arguments, schema)
    assert not decision.allowed
    assert isinstance(decision.error, ToolParameterError)
    return decision.error


def problems_of(path: str, keywords: Any) -> tuple[str, ...]:
    with pytest.raises(InvalidToolRulesError) as caught:
        rules_for(path, keywords)
    return caught.value.problems


def checks_for(parameters: dict[str, Any]) -> ParameterChecks:
    checks = ToolRules.parse({"params": {"tool": parameters}}).checks(("tool",))
    assert checks is not None
    return checks


@given(all_keywords, values)
def test_rules_agree_with_the_reference(keywords: dict[str, Any], value: Any) -> None:
    assert keeps(keywords, value) == is_valid(keywords, value)


@given(st.sampled_from(TYPES), values)
@example("integer", 1.0)
@example("integer", 1e300)
@example("integer", -0.0)
@example("integer", 10**400)
@example("integer", True)
@example("number", False)
@example("boolean", 0)
@example("null", False)
@example("string", "")
def test_types_are_those_of_json(name: str, value: Any) -> None:
    assert keeps({"type": name}, value) == is_valid({"type": name}, value)


@given(st.data(), enums)
def test_enum_compares_values_as_json_does(data: st.DataObject, enum: list[Any]) -> None:
    value = data.draw(respelled(data.draw(st.sampled_from(enum))))
    assert keeps({"enum": enum}, value) == is_valid({"enum": enum}, value)


@pytest.mark.parametrize(
    ("listed", "value", "kept"),
    [
        (1, 1.0, True),
        (1.0, 1, True),
        (1, True, False),
        (True, 1, False),
        (0, False, False),
        (0, -0.0, True),
        (None, False, False),
        (2**53, 2**53 + 1, False),
        (float(2**53), 2**53 + 1, False),
        ("1", 1, False),
        ("é", "e\N{COMBINING ACUTE ACCENT}", False),
        ([1, [True]], [1.0, [True]], True),
        ([1, [True]], [1, [1]], False),
        ({"a": 1, "b": 2}, {"b": 2.0, "a": 1.0}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
    ],
)
def test_enum_distinguishes_equal_values_as_json_does(listed: Any, value: Any, kept: bool) -> None:
    assert keeps({"enum": [listed]}, value) is kept
    assert keeps({"enum": [None if listed else 9, listed]}, value) is kept


@given(st.sampled_from(["minLength", "maxLength"]), lengths, texts)
@example("maxLength", 2, "\N{MATHEMATICAL SCRIPT SMALL X}" * 2)
@example("maxLength", 1, "e\N{COMBINING ACUTE ACCENT}")
@example("minLength", 2.0, "👩‍👩‍👧")
@example("minLength", 1, "\x00")
def test_lengths_count_code_points(keyword: str, limit: Any, text: str) -> None:
    assert keeps({keyword: limit}, text) == is_valid({keyword: limit}, text)


@given(st.sampled_from(["minimum", "maximum"]), numbers, numbers)
@example("maximum", 2**53, 2**53 + 1)
@example("maximum", float(2**53), 2**53 + 1)
@example("maximum", 2**53 + 1, float(2**53 + 2))
@example("minimum", 2**64, 2**64 - 1)
@example("maximum", 10**400, 10**400 + 1)
@example("maximum", 0.1, 0.1)
@example("maximum", 0.3, 0.1 + 0.2)
@example("minimum", 0, -0.0)
@example("maximum", 1.7976931348623157e308, 10**309)
def test_limits_are_exact_whatever_the_size(keyword: str, limit: Any, number: Any) -> None:
    assert keeps({keyword: limit}, number) == is_valid({keyword: limit}, number)


@given(st.sampled_from(list(PATTERNS)), texts)
def test_patterns_match_anywhere_in_a_text(pattern: str, text: str) -> None:
    assert keeps({"pattern": pattern}, text) == is_valid({"pattern": pattern}, text)


@pytest.mark.parametrize(
    ("pattern", "text", "kept"),
    [
        ("^a$", "a\n", False),
        ("^a", "b\na", False),
        (r"\d", "\N{ARABIC-INDIC DIGIT THREE}", False),
        (r"\w", "é", False),
        (r"\p{L}", "é", True),
        (r"^[^\x00-\x1f]*$", "a\tb", False),
        (r"^\S+$", "a\N{NO-BREAK SPACE}b", False),
        (r"\/", "/", True),
        ("^.$", "\N{MATHEMATICAL SCRIPT SMALL X}", True),
    ],
)
def test_patterns_are_those_of_ecma_script(pattern: str, text: str, kept: bool) -> None:
    assert keeps({"pattern": pattern}, text) is kept


@pytest.mark.parametrize("value", [None, True, [0], {"a": "b"}])
@pytest.mark.parametrize(
    "rule", [{"minLength": 9}, {"maxLength": 0}, {"pattern": "^x"}, {"minimum": 9}, {"maximum": -9}]
)
def test_a_keyword_ignores_values_of_another_type(rule: dict[str, Any], value: Any) -> None:
    assert keeps(rule, value)


@pytest.mark.parametrize("value", [True, [0], {"a": "b"}])
@pytest.mark.parametrize(
    ("rule", "other"),
    [
        *((rule, 5) for rule in ({"minLength": 9}, {"maxLength": 0}, {"pattern": "^x"})),
        *((rule, "500") for rule in ({"minimum": 9}, {"maximum": -9})),
    ],
)
def test_a_tool_with_a_schema_gets_only_values_that_a_keyword_can_check(
    rule: dict[str, Any], other: Any, value: Any
) -> None:
    for schema in (schema_of(None), schema_of("value")):
        for one in (value, other):
            assert broken("value", rule, {"value": one}, schema).code == "E11"
            typed = {"type": list(TYPES), **rule}
            assert decided("value", typed, {"value": one}, schema).allowed, "the rule alone decides"
        assert decided("value", rule, {"value": None}, schema).allowed


def test_a_missing_parameter_breaks_no_rule() -> None:
    assert decided("value", {"type": "string", "minLength": 3}, {"other": 1}).allowed
    assert decided("filter.limit", {"maximum": 3}, {"filter": {}}).allowed


@pytest.mark.parametrize(
    ("keyword", "limit", "value", "code", "message"),
    [
        ("type", "string", 3, "E11", "Tool parameter type mismatch: tool.value"),
        ("enum", ("a",), "b", "E12", "Tool parameter enum mismatch: tool.value"),
        ("minLength", 2, "a", "E13", "Tool parameter minLength mismatch: tool.value"),
        ("maxLength", 2, "abc", "E14", "Tool parameter maxLength mismatch: tool.value"),
        ("pattern", "^a", "b", "E15", "Tool parameter pattern mismatch: tool.value"),
        ("minimum", 2, 1, "E16", "Tool parameter minimum mismatch: tool.value"),
        ("maximum", 2, 3, "E17", "Tool parameter maximum mismatch: tool.value"),
    ],
)
def test_each_keyword_has_its_error(keyword: str, limit: Any, value: Any, code: str, message: str) -> None:
    error = broken("value", {keyword: limit}, {"value": value})
    assert str(error) == f"[kantan-agents][{code}] {message}"
    assert error.code == code
    assert type(error) is PARAMETER_ERRORS[keyword]
    assert (error.tool_name, error.param_name, error.limit) == ("tool", "value", limit)


@given(all_keywords, values)
def test_the_error_is_that_of_the_first_keyword_that_fails(keywords: dict[str, Any], value: Any) -> None:
    decision = decided("value", keywords, {"value": value})
    failing = [
        name for name in PARAMETER_ERRORS if name in keywords and not is_valid({name: keywords[name]}, value)
    ]
    if failing:
        assert type(decision.error) is PARAMETER_ERRORS[failing[0]]
        assert decision.entry == f"tool.value.{failing[0]}"
    else:
        assert decision.allowed


def test_the_first_rule_that_fails_is_named_first() -> None:
    parameters = {"b": {"type": "string"}, "a": {"type": "string"}}
    breach = checks_for(parameters).breach("tool", {"a": 1, "b": 2})
    assert breach is not None
    assert breach.entry == "tool.b.type"


@pytest.mark.parametrize(
    ("path", "kept", "broken_by"),
    [
        ("filter.limit", {"filter": {"limit": 3}}, {"filter": {"limit": 30}}),
        ("a.b.c", {"a": {"b": {"c": 0}}}, {"a": {"b": {"c": 11}}}),
        ("ids[]", {"ids": [1, 2, "x"]}, {"ids": [1, 2, 11]}),
        ("ids[][]", {"ids": [[], [1], 30]}, {"ids": [[], [1, 11]]}),
        ("rows[].id", {"rows": [{"id": 1}, {}, 30]}, {"rows": [{"id": 1}, {"id": 11}]}),
        ("filter.limit", {"filter": 30}, {"filter.limit": 30}),
        ("ids[]", {"ids": 30}, {"ids[]": 30}),
        ("page[size]", {"page": {"size": 30}}, {"page[size]": 30}),
        ("$ref", {"a": 30}, {"$ref": 30}),
        ("名.前", {"名": {"前": 1}}, {"名": {"前": 30}}),
        ("a\nb", {"a": 30}, {"a\nb": 30}),
    ],
)
def test_a_path_leads_into_objects_and_to_every_item_of_arrays(path: str, kept: Any, broken_by: Any) -> None:
    assert decided(path, {"maximum": 10}, kept).allowed
    error = broken(path, {"maximum": 10}, broken_by)
    assert str(error) == f"[kantan-agents][E17] Tool parameter maximum mismatch: tool.{path}"


steps = st.sampled_from(["a", "b", "c d", "[]"])


@given(st.lists(steps, max_size=5).map(lambda rest: ["p", *rest]), numbers, st.data())
def test_a_limit_holds_at_any_depth(path: list[str], limit: Any, data: st.DataObject) -> None:
    value: Any = data.draw(numbers)
    kept = is_valid({"maximum": limit}, value)
    written = path[0]
    for step in path[1:]:
        written += step if step == "[]" else f".{step}"
    for step in reversed(path):
        value = [0, value][limit < 0 :] if step == "[]" else {step: value, "other": None}
    assert parse_path(written) == tuple(path)
    assert decided(written, {"maximum": limit}, value).allowed == kept


def test_rules_of_a_name_and_of_a_pattern_both_hold() -> None:
    rules = ToolRules.parse(
        {"params": {"fs.*": {"path": {"pattern": "^/"}}, "fs.read": {"path": {"maxLength": 5}}, "*": {}}}
    )
    tool = ToolFacts(("fs.read",))
    assert decide_call(rules, tool, {"path": "/a"}).allowed
    assert decide_call(rules, tool, {"path": "a"}).entry == "fs.*.path.pattern"
    assert decide_call(rules, tool, {"path": "/12345"}).entry == "fs.read.path.maxLength"


def test_rules_hold_under_each_name_of_a_tool() -> None:
    rules = ToolRules.parse({"params": {"mcp__notes__add": {"text": {"maxLength": 2}}}})
    error = decide_call(rules, ToolFacts(("add", "mcp__notes__add")), {"text": "abc"}).error
    assert str(error) == "[kantan-agents][E14] Tool parameter maxLength mismatch: add.text"


@pytest.mark.parametrize("text", ["\ud800", "a\udfff"])
def test_texts_with_invalid_unicode_are_e10(text: str) -> None:
    with pytest.raises(ToolInputError):
        decided("value", {"pattern": "a"}, {"value": text})


@pytest.mark.parametrize("rule", [{"enum": [[1]]}, {"enum": [1]}, {"type": "string"}])
def test_deeply_nested_arguments_are_refused(rule: dict[str, Any]) -> None:
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    assert not decided("value", rule, {"value": value}).allowed


def test_one_error_is_found_among_any_number() -> None:
    error = broken("ids[]", {"maxLength": 3, "pattern": "^a"}, {"ids": ["bbbb"] * 100_000})
    assert error.code == "E14"


# Types that a tool declares


OPTIONAL = {"anyOf": [{"$ref": "#/$defs/Filter"}, {"type": "null"}]}
FILTER = {"type": "object", "properties": {"limit": {"type": "integer"}, "text": {"type": "string"}}}
DECLARED = {
    "type": "object",
    "properties": {
        "limit": {"type": "integer"},
        "share": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "name": {"type": ["string", "null"]},
        "any": {},
        "filter": OPTIONAL,
        "ids": {"type": "array", "items": {"$ref": "#/definitions/Id"}},
        "single": {"allOf": [{"$ref": "#/$defs/Filter"}], "default": None},
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        "choice": {"oneOf": [FILTER, {"type": "object", "properties": {"limit": {"type": "number"}}}]},
        "tree": {"$ref": "#/$defs/Tree"},
        "elsewhere": {"$ref": "https://example.com/schema.json"},
        "nowhere": {"$ref": "#/$defs/Nothing/at/all"},
        "either": {"type": ["integer", "string", "array"]},
        "filters": {"anyOf": [FILTER, {"type": "array", "items": FILTER}, {"type": "string"}]},
        "closed": {"type": "object", "properties": {}, "additionalProperties": False},
    },
    "$defs": {
        "Filter": {"$ref": "#/$defs/Filter~1Really"},
        "Filter/Really": FILTER,
        "Tree": {
            "type": "object",
            "properties": {"size": {"type": "integer"}, "child": {"anyOf": [{"$ref": "#/$defs/Tree"}]}},
        },
    },
    "definitions": {"Id": {"type": "integer"}},
}


@pytest.mark.parametrize(
    ("path", "arguments"),
    [
        ("limit", {"limit": "500"}),
        ("limit", {"limit": 5.5}),
        ("limit", {"limit": True}),
        ("limit", {"limit": None}),
        ("share", {"share": "0.5"}),
        ("name", {"name": 3}),
        ("filter.limit", {"filter": {"limit": "500"}}),
        ("filter.limit", {"filter": '{"limit": 500}'}),
        ("filter.limit", {"filter": [{"limit": 500}]}),
        ("ids[]", {"ids": [1, "500"]}),
        ("ids[]", {"ids": "[500]"}),
        ("ids[]", {"ids": {"0": 500}}),
        ("single.limit", {"single": {"limit": "500"}}),
        ("counts.a", {"counts": {"a": "500"}}),
        ("choice.limit", {"choice": {"limit": "500"}}),
        ("tree.child.child.size", {"tree": {"child": {"child": {"size": "500"}}}}),
        ("tree.child.child.size", {"tree": {"child": '{"child": {"size": 500}}'}}),
        ("elsewhere", {"elsewhere": "500"}),  # declared, but the declaration cannot be read
        ("nowhere", {"nowhere": "500"}),
        ("name", {"name": "500"}),  # no value that the tool declares can be checked
        ("either", {"either": "500"}),
        ("either", {"either": [500]}),
        ("filters.limit", {"filters": [{"limit": 5}]}),
        ("filters[].limit", {"filters": {"limit": 5}}),
        ("filters.limit", {"filters": "limit=500"}),
        ("closed.limit", {"closed": {"limit": 5}}),
        ("any", {"any": "500"}),
        ("any", {"any": [500]}),
        ("any", {"any": True}),
        ("any.limit", {"any": '{"limit": 500}'}),
        ("any[]", {"any": "500"}),
        ("undeclared", {"undeclared": "500"}),
    ],
)
def test_a_value_of_an_undeclared_type_does_not_bypass_a_limit(path: str, arguments: Any) -> None:
    error = broken(path, {"maximum": 10}, arguments, DECLARED)
    assert isinstance(error, ToolParameterTypeError)
    assert error.param_name == path
    assert decided(path, {"maximum": 10}, arguments, DECLARED).entry == f"tool.{path}"


@pytest.mark.parametrize(
    ("path", "arguments"),
    [
        ("limit", {"limit": 5}),
        ("limit", {"limit": 5.0}),
        ("share", {"share": 1}),
        ("share", {"share": None}),
        ("name", {"name": None}),
        ("any", {"any": 5}),
        ("filter.limit", {"filter": {"limit": 5}}),
        ("filter.limit", {"filter": None}),
        ("ids[]", {"ids": [1, 2]}),
        ("counts.a", {"counts": {"a": 1}}),
        ("choice.limit", {"choice": {"limit": 1.5}}),
        ("tree.size", {"tree": {"size": 3}}),
        ("undeclared", {"undeclared": 5}),
        ("elsewhere", {"elsewhere": 5}),
        ("nowhere", {"nowhere": 5}),
        ("limit", {"name": 3}),
    ],
)
def test_a_value_of_the_declared_type_is_accepted(path: str, arguments: Any) -> None:
    assert decided(path, {"maximum": 10}, arguments, DECLARED).allowed


INTEGER = {"type": "integer"}
IS_A = {"properties": {"kind": {"const": "a"}}}


@pytest.mark.parametrize(
    ("declared", "path", "refused", "allowed"),
    [
        ({"prefixItems": [INTEGER, INTEGER]}, "p[]", ["500", 1], [5, 1]),
        ({"prefixItems": [{"type": "string"}, INTEGER]}, "p[]", [None, "500"], None),
        ({"prefixItems": [{}], "items": INTEGER}, "p[]", [1, "500"], [None, 5]),
        ({"items": [INTEGER], "additionalItems": {}}, "p[]", ["500", 1], [5, None]),
        ({"items": [{}], "additionalItems": INTEGER}, "p[]", [1, "500"], [None, 5]),
        ({"prefixItems": [{}], "unevaluatedItems": INTEGER}, "p[]", [1, "500"], [None, 5]),
        ({"prefixItems": [{"prefixItems": [{}, INTEGER]}]}, "p[][]", [["x", "500"]], [[None, 5]]),
        ({"patternProperties": {"^a": INTEGER}}, "p.a", {"a": "500"}, {"a": 5}),
        ({"patternProperties": {"(?=a)": INTEGER}}, "p.a", {"a": "500"}, {"a": 5}),
        ({"patternProperties": {"^b": INTEGER}, "additionalProperties": {}}, "p.a", {"a": "500"}, {"a": 5}),
        ({"properties": {"a": {}}, "patternProperties": {"a": INTEGER}}, "p.a", {"a": "500"}, {"a": 5}),
        ({"unevaluatedProperties": INTEGER}, "p.a", {"a": "500"}, {"a": 5}),
        ({"allOf": [{"description": "x"}, {"properties": {"a": INTEGER}}]}, "p.a", {"a": "500"}, {"a": 5}),
        ({"type": "object", "anyOf": [{"properties": {"a": INTEGER}}, {}]}, "p.a", {"a": "500"}, {"a": 5}),
        ({"if": IS_A, "then": {"properties": {"a": INTEGER}}}, "p.a", {"a": "500"}, {"a": 5}),
        ({"if": IS_A, "else": {"properties": {"a": INTEGER}}}, "p.a", {"a": "500"}, {"a": 5}),
        ({"dependentSchemas": {"b": {"properties": {"a": INTEGER}}}}, "p.a", {"a": "500"}, {"a": 5}),
        ({"dependencies": {"b": {"properties": {"a": INTEGER}}, "c": ["d"]}}, "p.a", {"a": "500"}, {"a": 5}),
        ({"properties": {"a": {"const": 5}}}, "p.a", {"a": "5"}, {"a": 5}),
        ({"properties": {"a": {"enum": [5, None]}}}, "p.a", {"a": "5"}, {"a": None}),
        ({"properties": {"a": {"not": {"type": "string"}}}}, "p.a", {"a": "5"}, {"a": 5}),
        ({"properties": {"a": {"type": "int"}}}, "p.a", {"a": "5"}, {"a": 5}),
        ({"properties": {"a": {"type": "integer", "nullable": True}}}, "p.a", {"a": "5"}, {"a": None}),
        ({"properties": {"a": False}}, "p.a", {"a": 5}, {}),
        ({"properties": {"a": True}}, "p.a", {"a": "5"}, {"a": 5}),
        ({"properties": {"a": {"$ref": "#/%24defs/I"}}}, "p.a", {"a": "5"}, {"a": 5}),
        (
            {"properties": {"a": {"$ref": "#/properties/p/anyOf/0"}}, "anyOf": [INTEGER]},
            "p.a",
            {"a": 5},
            None,
        ),
        ({"properties": {"a": {"$dynamicRef": "#node"}}}, "p.a", {"a": "5"}, {"a": 5}),
        (
            {"properties": {"a": {"type": "integer", "anyOf": [{"type": "string"}, {}]}}},
            "p.a",
            {"a": "5"},
            {"a": 5},
        ),
        ({"contains": {"type": "string"}, "items": INTEGER}, "p[]", ["5"], [5]),
    ],
)
def test_a_type_declared_by_any_keyword_counts(declared: Any, path: str, refused: Any, allowed: Any) -> None:
    schema = {"type": "object", "properties": {"p": declared}, "$defs": {"I": INTEGER}}
    assert broken(path, {"maximum": 10}, {"p": refused}, schema).code == "E11"
    if allowed is not None:
        assert decided(path, {"maximum": 10}, {"p": allowed}, schema).allowed


def test_a_rule_about_texts_refuses_numbers_that_a_tool_also_takes() -> None:
    schema = {"properties": {"amount": {"anyOf": [{"type": "number"}, {"type": "string"}]}}}
    assert broken("amount", {"pattern": "^[0-9]{1,2}$"}, {"amount": 600}, schema).code == "E11"
    assert decided("amount", {"pattern": "^[0-9]{1,2}$"}, {"amount": "60"}, schema).allowed


@pytest.mark.parametrize(
    ("declared", "path", "arguments", "allowed"),
    [
        ({"limit": {"type": "integer", "default": 600}}, "limit", {}, False),
        ({"limit": {"type": "integer", "default": 600}}, "limit", {"limit": 5}, True),
        ({"limit": {"type": "integer", "default": 6}}, "limit", {}, True),
        ({"limit": {"type": ["integer", "null"], "default": None}}, "limit", {}, True),
        ({"filter": {"properties": {"limit": {"default": 600}}}}, "filter.limit", {"filter": {}}, False),
        ({"filter": {"properties": {"limit": {"default": 600}}}}, "filter.limit", {}, True),
        ({"filter": {"default": {"limit": 600}}}, "filter.limit", {}, False),
        ({"filter": {"default": {}, "anyOf": [{"$ref": "#/$defs/F"}]}}, "filter.limit", {}, False),
    ],
)
def test_a_missing_parameter_has_its_declared_default(
    declared: Any, path: str, arguments: Any, allowed: bool
) -> None:
    schema = {"properties": declared, "$defs": {"F": {"properties": {"limit": {"default": 600}}}}}
    decision = decided(path, {"maximum": 50}, arguments, schema)
    assert decision.allowed is allowed
    assert decision.error is None or decision.error.code == "E17"


def test_a_rule_with_types_overrides_the_declaration() -> None:
    assert decided("limit", {"type": "string"}, {"limit": "5"}, DECLARED).allowed


def test_the_declaration_is_checked_only_for_parameters_under_a_rule() -> None:
    assert decided("other", {"maximum": 10}, {"limit": "500"}, DECLARED).allowed


schemas = st.recursive(
    json_values(max_leaves=2)
    | st.sampled_from(
        [{"$ref": "#/$defs/A"}, {"$ref": "#"}, {"$ref": "#/$defs/A/anyOf/0"}, {"type": "integer"}]
    ),
    lambda inner: st.dictionaries(
        st.sampled_from(
            [
                *("type", "properties", "items", "anyOf", "oneOf", "allOf", "additionalProperties", "p"),
                *(
                    "prefixItems",
                    "patternProperties",
                    "if",
                    "then",
                    "not",
                    "enum",
                    "const",
                    "default",
                    "$ref",
                ),
                *("dependentSchemas", "unevaluatedProperties", "additionalItems"),
            ]
        ),
        inner | st.lists(inner, max_size=2) | st.fixed_dictionaries({"p": inner}),
        max_size=3,
    ),
    max_leaves=6,
)


@given(schemas, schemas)
def test_any_schema_of_a_tool_can_be_read(schema: Any, other: Any) -> None:
    schema = {**schema, "$defs": {"A": other}} if isinstance(schema, dict) else schema
    for path in ("p", "p.p", "p[].p"):
        decision = decided(path, {"maximum": 3}, {"p": {"p": 5}}, schema)
        assert decision.allowed or isinstance(decision.error, ToolParameterError)


def test_a_schema_with_many_references_to_itself_is_read_quickly() -> None:
    definitions = {
        f"D{number}": {"anyOf": [{"$ref": f"#/$defs/D{number + 1}"}, {"$ref": f"#/$defs/D{number + 1}"}]}
        for number in range(100)
    }
    definitions["D100"] = {"anyOf": [{"$ref": "#/$defs/D0"}, {"type": "integer"}]}
    schema = {"properties": {"p": {"$ref": "#/$defs/D0"}}, "$defs": definitions}
    assert not decided("p", {"maximum": 3}, {"p": "5"}, schema).allowed


# Errors when the rules are parsed


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)",
        "(?!a)",
        "(?<=a)b",
        "(?<!a)b",
        r"(a)\1",
        r"(?P<n>a)(?P=n)",
        "(",
        "[a",
        "a{2,1}",
        "*",
        "a{1000000}",
        "((a{100}){100}){100}",
        "\ud800",
        r"\p{Nonsense}",
    ],
)
def test_a_pattern_that_cannot_be_checked_in_linear_time_is_refused(pattern: str) -> None:
    (problem,) = problems_of("value", {"pattern": pattern})
    assert problem.startswith("params.tool.value.pattern: ")
    assert "cannot be compiled by the linear-time engine" in problem


@pytest.mark.parametrize(
    ("keyword", "value", "problem"),
    [
        ("type", "str", "'str' is not a type, did you mean string?"),
        ("type", "INTEGER", "'INTEGER' is not a type, there are"),
        ("type", [], "must be a type or a list of types, not []"),
        ("type", None, "must be a type or a list of types, not None"),
        ("type", ["string", "string"], "names a type twice"),
        ("type", ["string", ["null"]], "['null'] is not a type"),
        ("enum", [], "must be a list of at least one value, not []"),
        ("enum", "ab", "must be a list of at least one value, not 'ab'"),
        ("enum", [float("nan")], "must hold JSON values only"),
        ("enum", [{1: 2}], "must hold JSON values only"),
        ("enum", [b"x"], "must hold JSON values only"),
        ("enum", ["\ud800"], "must hold JSON values only"),
        ("minLength", -1, "must be a whole number, 0 or more, not -1"),
        ("minLength", 1.5, "must be a whole number, 0 or more, not 1.5"),
        ("maxLength", True, "must be a whole number, 0 or more, not True"),
        ("maxLength", "3", "must be a whole number, 0 or more, not '3'"),
        ("maxLength", float("inf"), "must be a whole number, 0 or more, not inf"),
        ("pattern", 3, "must be a regular expression as a str, not 3"),
        ("minimum", "3", "must be a finite number, not '3'"),
        ("minimum", float("nan"), "must be a finite number, not nan"),
        ("maximum", float("-inf"), "must be a finite number, not -inf"),
        ("maximum", False, "must be a finite number, not False"),
        pytest.param("maximum", 10**5000, "must be a finite number, not a very large int", id="large"),
        ("maxlength", 3, "unknown keyword, did you mean maxLength?"),
        ("max_length", 3, "unknown keyword, did you mean maxLength?"),
        ("format", "uri", "unknown keyword, there are type, enum, minLength"),
        ("exclusiveMinimum", 3, "unknown keyword, there are type, enum, minLength"),
    ],
)
def test_an_invalid_value_of_a_keyword_is_refused_with_its_path(
    keyword: str, value: Any, problem: str
) -> None:
    found = problems_of("value", {keyword: value})
    assert any(one.startswith(f"params.tool.value.{keyword}: {problem}") for one in found), found


@pytest.mark.parametrize(
    "path", ["a..b", ".a", "a.", "[]", "a.[]", "ids[0]", "ids[0].x", "ids[]x", "\ud800", "a" + ".a" * 40]
)
def test_a_path_that_leads_nowhere_is_refused(path: str) -> None:
    (problem,) = problems_of(path, {"type": "string"})
    assert problem.startswith(f"params.tool.{path}: ")


@given(all_keywords)
def test_parsed_rules_can_be_compiled(keywords: dict[str, Any]) -> None:
    # A rule that cannot be compiled would make every call of the tool an E10.
    assert decided("value", json.loads(json.dumps(keywords)), {"other": None}).allowed


# Cost on the event loop


LARGE = r"(\w{1,50}\s){1,20}$"


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^[a-z]+$", r"\d"])
def test_a_short_pattern_is_quick_with_any_text(pattern: str) -> None:
    assert checks_for({"p": {"pattern": pattern}}).is_quick({"p": "a" * 1_000_000})


@pytest.mark.parametrize("pattern", [LARGE, r"\b.\b.\B$", "a{1,9}b"])
def test_an_expensive_pattern_is_quick_with_a_short_text_only(pattern: str) -> None:
    checks = checks_for({"p.q[]": {"pattern": pattern}})
    assert checks.is_quick({"p": {"q": ["short"]}})
    assert not checks.is_quick({"p": {"q": ["a" * 100_000]}})
    assert checks.is_quick({"p": {"q": "a" * 100_000}}), "the rule is not about this"


def test_many_short_texts_take_as_long_as_one_long_text() -> None:
    checks = checks_for({"p[]": {"pattern": LARGE}})
    assert not checks.is_quick({"p": ["short"] * 20_000})


def test_rules_without_patterns_are_always_quick() -> None:
    checks = checks_for({"p": {"maxLength": 3, "enum": ["a"]}})
    assert checks.is_quick({"p": "a" * 1_000_000})
