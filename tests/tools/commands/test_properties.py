"""Properties: a written command line is parsed to the same arguments, and any text is parsed or rejected."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kantan_agents.errors import CommandSyntaxError, KantanAgentsError, code_of
from kantan_agents.tools.commands import Command, CommandRegistry, command_line, kind_of, split_line

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
KINDS: dict[str, tuple[dict[str, Any], st.SearchStrategy[Any]]] = {
    "text": ({"type": "string"}, TEXTS),
    "integer": ({"type": "integer"}, st.integers()),
    "number": ({"type": "number"}, NUMBERS | st.integers()),
    "flag": ({"type": "boolean"}, st.booleans()),
    "maybe": ({"anyOf": [{"type": "string"}, {"type": "null"}]}, st.none() | TEXTS),
    "either": ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, st.integers() | TEXTS),
    "choice": ({"enum": ["a", "b c", 1, None]}, st.sampled_from(["a", "b c", 1, None])),
    "texts": ({"type": "array", "items": {"type": "string"}}, st.lists(TEXTS, max_size=3)),
    "object": ({"type": "object"}, st.dictionaries(TEXTS, JSON, max_size=3)),
    "anything": ({}, JSON),
}
NAMES = st.sampled_from(["path", "max_lines", "dry-run", "パス", "no_x", "x"])


@st.composite
def calls(draw: Any) -> tuple[Command, dict[str, Any]]:
    names = draw(st.lists(NAMES, unique=True, max_size=4))
    kinds = {name: KINDS[draw(st.sampled_from(sorted(KINDS)))] for name in names}
    required = [name for name in names if draw(st.booleans())]
    arguments = {
        name: draw(values) for name, (_, values) in kinds.items() if name in required or draw(st.booleans())
    }
    properties = {name: schema for name, (schema, _) in kinds.items()}
    return Command("do", "", {"type": "object", "properties": properties, "required": required}), arguments


def outcome_of(call: Callable[[], Any]) -> tuple[Any, Any]:
    try:
        return None, call()
    except KantanAgentsError as error:
        return error, None


def same(one: Any, other: Any) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


@given(calls())
def test_arguments_survive_a_round_trip_through_a_command_line(call: tuple[Command, dict[str, Any]]) -> None:
    command, arguments = call
    line = split_line(command_line(command, arguments))
    assert line.name == "do"
    assert same(command.read(line.rest), arguments)


@given(calls())
def test_a_json_object_is_parsed_to_itself(call: tuple[Command, dict[str, Any]]) -> None:
    command, arguments = call
    assert same(command.read(json.dumps(arguments)), arguments)


PIECES = st.sampled_from(
    ['"', "'", "--", "=", "path", "--no-", "x", " ", "\n", "\\", "{", "}", "[", ",", "-1", "\0"]
)
TYPED = st.text(max_size=30) | st.lists(PIECES | TEXTS, max_size=12).map("".join)


@given(calls(), TYPED)
@settings(max_examples=100)
def test_any_text_is_parsed_or_rejected_with_the_usage(call: tuple[Command, Any], text: str) -> None:
    command, _ = call
    error, arguments = outcome_of(lambda: command.read(text))
    if error is None:
        assert same(command.read(json.dumps(arguments)), arguments)
    else:
        assert isinstance(error, CommandSyntaxError)
        assert error.problems
        assert str(error).endswith(command.usage())


@given(TYPED, st.sampled_from(["/", "!", "//", "::"]))
def test_any_line_with_a_prefix_is_a_command_or_an_escaped_text(text: str, prefix: str) -> None:
    registry = CommandRegistry([Command("x")], prefix=prefix)
    assert kind_of(prefix * 2 + text, prefix) == "escaped"
    error, _ = outcome_of(lambda: registry.require(split_line(prefix + text, prefix).name))
    assert error is None or code_of(error) in ("E54", "E55")
