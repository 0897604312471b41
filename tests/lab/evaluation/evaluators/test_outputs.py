"""Evaluators of the final output."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from pydantic import BaseModel

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab import Evaluator, FinishedCase, Score
from kantan_agents.lab.evaluation.dataset.json_data import same_data
from kantan_agents.lab.evaluation.evaluators import contains, exact, json_fields, matches, valid
from kantan_agents.testing.strategies import json_values
from tests.lab.evaluation.values import expecting, finished


def score(evaluator: Evaluator, run: FinishedCase) -> Score | None:
    """Return the only score, or None if the evaluator does not apply."""
    scores = asyncio.run(evaluator.score(run))
    assert [*scores] in ([], [evaluator.name])
    return scores.get(evaluator.name)


def value(evaluator: Evaluator, output: Any, expected: Any = None) -> float | None:
    given = score(evaluator, finished(output, case=expecting(expected)))
    return None if given is None else given.value


def test_exact_compares_texts_and_data() -> None:
    assert value(exact(), "a", "a") == 1.0
    assert value(exact(), "a", "A") == value(exact(), "a ", "a") == 0.0
    assert value(exact(), {"a": 1, "b": [None]}, {"b": [None], "a": 1.0}) == 1.0
    assert value(exact(), {"a": True}, {"a": 1}) == 0.0
    assert value(exact(), "", "") == 1.0
    assert value(exact(), "a", None) is None
    assert value(exact("a"), "a", "b") == value(exact(None), None, "b") == 1.0


def test_exact_reads_a_text_as_json_where_the_other_is_data() -> None:
    assert value(exact(), {"a": 1}, '{"a": 1}') == value(exact(), '{"a": 1}', {"a": 1}) == 1.0
    assert value(exact(), {"a": 1}, "{") == 0.0
    assert value(exact(), '{"a":1}', '{"a": 1}') == 0.0


@given(json_values(), json_values())
def test_the_same_data_is_symmetric_and_reflexive(one: Any, other: Any) -> None:
    assert same_data(one, one)
    assert same_data(one, other) == same_data(other, one)


def test_contains_needs_all_texts() -> None:
    assert value(contains("refund", "DAYS"), "A Refund in 3 days") == 1.0
    missing = score(contains("refund", "weeks", "x"), finished("Refund"))
    assert missing == Score(0.0, comment="missing: 'weeks', 'x'")
    assert value(contains("refund", ignore_case=False), "Refund") == 0.0
    assert value(contains("ß"), "SS") == 1.0
    assert value(contains("1"), {"a": 1}) == 1.0


def test_contains_without_texts_looks_for_the_expected_one() -> None:
    assert value(contains(), "It is Paris.", "paris") == 1.0
    for expected in (None, "", {"a": 1}):
        assert value(contains(), "It is Paris.", expected) is None


def test_json_fields_is_the_fraction_of_fields_that_are_as_expected() -> None:
    expected = {"name": "Ada", "items": [{"n": 1}, {"n": 2}], "open": True}
    assert value(json_fields(), expected, expected) == 1.0
    given = score(json_fields(), finished({"name": "Bob", "open": True}, case=expecting(expected)))
    assert given is not None
    assert given.value == pytest.approx(1 / 3)
    assert given.comment == 'name: "Bob"; items: missing'
    assert value(json_fields("items.1.n", "name"), {"items": [{}, {"n": 2}]}, expected) == 0.5
    assert value(json_fields("items.0.n"), '{"items": [{"n": 1}]}', expected) == 1.0
    assert value(json_fields(), "no JSON", expected) == 0.0
    assert value(json_fields(), [1, 3], [1, 2]) == 0.5


def test_json_fields_does_not_apply_without_expected_fields() -> None:
    assert value(json_fields(), {"a": 1}, None) is None
    assert value(json_fields(), {"a": 1}, "text") is None
    assert value(json_fields(), {"a": 1}, {}) is None
    assert value(json_fields("b"), {"a": 1}, {"a": 1}) is None


def test_matches_searches_for_a_pattern() -> None:
    assert value(matches(r"\d+ days"), "in 3 days") == 1.0
    assert value(matches(r"\A\d+\Z"), "in 3 days") == 0.0
    assert value(matches(re.compile("DAYS", re.IGNORECASE)), "3 days") == 1.0
    assert value(matches("日本|é"), "日本") == 1.0


def test_the_output_is_never_used_as_a_pattern() -> None:
    assert value(contains("a.c"), "abc") == 0.0
    assert value(contains(), "abc", "a.c") == 0.0


class Answer(BaseModel):
    n: int
    when: date | None = None


@dataclass
class Point:
    x: float


class Custom:
    @classmethod
    def __get_pydantic_core_schema__(cls, *_: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(lambda given: given)


SCHEMA = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer", "minimum": 1}}}


def test_valid_checks_a_schema() -> None:
    assert value(valid(SCHEMA), {"n": 1}) == value(valid(SCHEMA), '{"n": 1}') == 1.0
    assert score(valid(SCHEMA), finished({"n": 0})) == Score(
        0.0, comment="n: 0 is less than the minimum of 1"
    )
    assert score(valid(SCHEMA), finished({})) == Score(0.0, comment='the output: "n" is a required property')
    given = score(valid(SCHEMA), finished("no JSON"))
    assert given is not None
    assert (given.value, given.error) == (0.0, None)
    assert "the output: it is not JSON" in str(given.comment)


def test_valid_checks_a_type_as_json() -> None:
    assert value(valid(Answer), {"n": 1, "when": "2026-01-31"}) == 1.0
    given = score(valid(Answer), finished('{"n": "x", "when": "never"}'))
    assert given is not None
    assert given.value == 0.0
    assert str(given.comment).startswith("n: Input should be a valid integer")
    assert value(valid(Point), {"x": 1}) == value(valid(list[int]), [1]) == value(valid(Custom), {}) == 1.0
    assert value(valid(list[int]), ["a"]) == 0.0


@pytest.mark.parametrize("uri", ["file:///etc/passwd", "http://127.0.0.1:9/schema", "#/$defs/missing"])
def test_a_schema_that_refers_to_something_else_is_refused(uri: str) -> None:
    with pytest.raises(InvalidOptionError, match="schema: is not a JSON Schema") as raised:
        valid({"$ref": uri})
    assert "\n" not in str(raised.value)


INVALID: list[tuple[Any, str]] = [
    (lambda: exact({1}), "expected"),
    (lambda: exact(float("nan")), "expected"),
    (lambda: contains(""), "texts"),
    (lambda: contains(5), "texts"),  # type: ignore[arg-type]
    (lambda: contains("a", ignore_case="yes"), "ignore_case"),  # type: ignore[arg-type]
    (lambda: json_fields(""), "paths"),
    (lambda: matches("("), "pattern"),
    (lambda: matches(b"a"), "pattern"),  # type: ignore[arg-type]
    (lambda: matches(5), "pattern"),  # type: ignore[arg-type]
    (lambda: valid({"type": "nothing"}), "schema"),
    (lambda: valid({"enum": {1}}), "schema"),
    (lambda: valid(len), "schema"),
    (lambda: exact(name=""), "name"),
]


@pytest.mark.parametrize(("make", "option"), INVALID)
def test_an_invalid_option_is_an_error_that_names_it(make: Any, option: str) -> None:
    with pytest.raises(InvalidOptionError) as raised:
        make()
    assert raised.value.option == option


def test_the_version_follows_the_options() -> None:
    made = [
        exact(),
        exact("a"),
        exact(None),
        contains("a"),
        contains("b"),
        contains("a", ignore_case=False),
        json_fields("a"),
        json_fields("a", "b"),
        matches("a"),
        matches(re.compile("a", re.MULTILINE)),
        valid(Answer),
        valid(Point),
        valid(Custom),
        valid(SCHEMA),
    ]
    assert len({evaluator.version for evaluator in made}) == len(made)
    assert contains("a").version == contains("a", name="other").version
