"""Parsing the arguments of tool calls is strict: every ambiguous text is E10."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kantan_agents.errors import ToolInputError
from kantan_agents.testing.strategies import json_values
from kantan_agents.tool_rules import parse_arguments

objects = st.dictionaries(st.text(max_size=8), json_values())


def reason_of(text: str) -> str:
    with pytest.raises(ToolInputError) as caught:
        parse_arguments("search", text)
    assert caught.value.tool_name == "search"
    assert str(caught.value) == "[kantan-agents][E10] Tool input must be a JSON object"
    return caught.value.reason


def wrapped(text: str, shape: list[bool]) -> str:
    """Nest JSON text in arrays and objects, and the result in an object."""
    for in_array in shape:
        text = f"[1, {text}]" if in_array else f'{{"k": {text}}}'
    return f'{{"argument": {text}}}'


shapes = st.lists(st.booleans(), max_size=4)


def strictly(value: Any) -> Any:
    """Return a form that distinguishes 1, 1.0 and True, which are equal in Python."""
    return json.dumps(value)


@given(objects, st.booleans(), st.sampled_from([None, 2, "\t"]), st.sampled_from(["", " ", "\r\n\t"]))
def test_an_object_is_parsed_as_by_json(arguments: Any, ascii_only: bool, indent: Any, around: str) -> None:
    text = around + json.dumps(arguments, ensure_ascii=ascii_only, indent=indent) + around
    assert strictly(parse_arguments("search", text)) == strictly(json.loads(text)) == strictly(arguments)


def test_an_empty_text_is_an_empty_object_as_in_the_sdk() -> None:
    assert parse_arguments("search", "") == {}


@given(json_values().filter(lambda value: not isinstance(value, dict)))
def test_json_other_than_an_object_is_e10(value: Any) -> None:
    assert reason_of(json.dumps(value)) == "they are not a JSON object"


@pytest.mark.parametrize(
    "text",
    [
        " ",
        "{",
        "{}}",
        "{} {}",
        "{'a': 1}",
        '{"a": 1,}',
        '{"a": 01}',
        '{"a": +1}',
        '{"a": .5}',
        '{"a": 0x1}',
        '{"a": tru}',
        "{a: 1}",
        '{"a": 1} // why',
        '{"a": "\t"}',
        '{"a": "\\x41"}',
        "\ufeff{}",
        "query=lamp",
    ],
)
def test_text_other_than_json_is_e10(text: str) -> None:
    assert reason_of(text) == "they are not a JSON object"


@given(st.text(max_size=4), json_values(max_leaves=2), json_values(max_leaves=2), shapes)
@example("a", 1, 1, [])
def test_a_duplicate_key_is_e10_at_any_depth(key: str, one: Any, other: Any, shape: list[bool]) -> None:
    name = json.dumps(key)
    twice = f'{{{name}: {json.dumps(one)}, "between": 0, {name}: {json.dumps(other)}}}'
    assert reason_of(wrapped(twice, shape)) == "a key occurs twice in them"


def test_a_key_spelled_in_two_ways_is_a_duplicate() -> None:
    assert reason_of('{"path": "/tmp", "p\\u0061th": "/etc"}') == "a key occurs twice in them"


@pytest.mark.parametrize("key", ["Path", "path ", "p\N{CYRILLIC SMALL LETTER A}th"])
def test_keys_that_only_look_alike_are_two_keys(key: str) -> None:
    assert parse_arguments("search", json.dumps({"path": 1, key: 2})) == {"path": 1, key: 2}


@given(
    st.sampled_from(["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1.0E+400", "123456789e400"]), shapes
)
def test_a_number_that_is_not_finite_is_e10_at_any_depth(number: str, shape: list[bool]) -> None:
    assert reason_of(wrapped(number, shape)) in (
        "a number in them is too large",
        f"{number} is not a JSON number",
    )


@given(st.sampled_from(["1e308", "5e-324", "1e-999", "-0.0", "-0", "1" * 400, "1E5", "1.0"]))
def test_any_finite_number_is_parsed(number: str) -> None:
    assert strictly(parse_arguments("search", f'{{"n": {number}}}')) == strictly({"n": json.loads(number)})


def test_a_number_of_thousands_of_digits_is_e10() -> None:
    reason_of('{"n": ' + "1" * 10_000 + "}")


@given(
    st.sampled_from(
        ['"\\ud800"', '"\\uDFFF\\uD800"', '"a\\udc00b"', '"\ud800"', '{"\\ud83d": 1}', '"\\ud83d\\u0041"']
    ),
    shapes,
)
def test_half_a_surrogate_pair_is_e10_at_any_depth(text: str, shape: list[bool]) -> None:
    assert reason_of(wrapped(text, shape)) == "a text in them is not valid Unicode"


@pytest.mark.parametrize("text", ['"\\ud83d\\ude00"', '"\\\\ud800"', '"\\uD83D\\uDE00 \\\\udfff"'])
def test_a_whole_surrogate_pair_is_one_character(text: str) -> None:
    assert parse_arguments("search", f'{{"a": {text}}}') == {"a": json.loads(text)}


@pytest.mark.parametrize("text", ["1", '"\\ud800"'])
@pytest.mark.parametrize("depth", [500, 2_000, 100_000])
def test_deep_nesting_is_parsed_or_e10(depth: int, text: str) -> None:
    nested = '{"a": ' + "[" * depth + text + "]" * depth + "}"
    try:
        arguments = parse_arguments("search", nested)
    except ToolInputError:
        return
    assert text == "1"
    assert list(arguments) == ["a"]


def test_nesting_beyond_any_limit_is_e10() -> None:
    reason_of('{"a": ' + "[" * 1_000_000)
    reason_of('{"a":' * 1_000_000)


@given(st.text(max_size=20) | st.text('{}[]":,0e9\\u d83t-', max_size=20) | st.characters(categories=["Cs"]))
def test_any_text_is_an_object_or_e10(text: str) -> None:
    try:
        arguments = parse_arguments("search", text)
    except ToolInputError:
        return
    assert arguments == (json.loads(text) if text else {})
