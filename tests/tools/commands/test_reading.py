"""Parsing the arguments of a command."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from agents import function_tool
from pydantic import BaseModel

from kantan_agents.errors import CommandSyntaxError
from kantan_agents.tools.commands import Command


def command(properties: dict[str, Any], required: list[str] | None = None, **more: Any) -> Command:
    names = list(properties) if required is None else required
    return Command("do", "", {"type": "object", "properties": properties, "required": names, **more})


TEXT = {"type": "string"}
INTEGER = {"type": "integer"}
FLAG = {"type": "boolean"}
READ = command(
    {
        "path": TEXT,
        "max_lines": {"type": "integer", "default": 10},
        "tags": {"type": "array", "items": TEXT, "default": []},
        "dry_run": {"type": "boolean", "default": False},
    }
)
SAY = command({"text": TEXT})
NOTE = command({"title": TEXT, "text": TEXT})


def problems(command: Command, rest: str) -> list[str]:
    with pytest.raises(CommandSyntaxError) as caught:
        command.read(rest)
    assert caught.value.usage == command.usage()
    return list(caught.value.problems)


@pytest.mark.parametrize(
    ("rest", "arguments"),
    [
        ("notes.txt", {"path": "notes.txt"}),
        ("notes.txt 5", {"path": "notes.txt", "max_lines": 5}),
        ("notes.txt 5 a b", {"path": "notes.txt", "max_lines": 5, "tags": ["a"], "dry_run": "b"}),
        ('"my notes.txt"', {"path": "my notes.txt"}),
        ("'my notes.txt'\n 5", {"path": "my notes.txt", "max_lines": 5}),
        ("--path notes.txt", {"path": "notes.txt"}),
        ("--path=notes.txt", {"path": "notes.txt"}),
        ('--path="my notes.txt" 5', {"path": "my notes.txt", "max_lines": 5}),
        ("path=notes.txt", {"path": "notes.txt"}),
        ("notes.txt --max-lines 5", {"path": "notes.txt", "max_lines": 5}),
        ("notes.txt --max_lines -5", {"path": "notes.txt", "max_lines": -5}),
        ("max-lines=5 notes.txt", {"path": "notes.txt", "max_lines": 5}),
        ("notes.txt --dry-run", {"path": "notes.txt", "dry_run": True}),
        ("--dry-run notes.txt", {"path": "notes.txt", "dry_run": True}),
        ("notes.txt --no-dry-run", {"path": "notes.txt", "dry_run": False}),
        ("notes.txt --dry-run=off", {"path": "notes.txt", "dry_run": False}),
        ("a --tags x --tags y", {"path": "a", "tags": ["x", "y"]}),
        ("a --tags x,y", {"path": "a", "tags": ["x", "y"]}),
        ('a --tags "x,y"', {"path": "a", "tags": ["x,y"]}),
        ('a --tags \'["x", "y,z"]\'', {"path": "a", "tags": ["x", "y,z"]}),
        ('{"path": "a", "max_lines": 3}', {"path": "a", "max_lines": 3}),
        ("-- --path", {"path": "--path"}),
        ("it's", {"path": "it's"}),
        (r"C:\new\table", {"path": r"C:\new\table"}),
        (r'"say \"hi\" \\ C:\new"', {"path": r'say "hi" \ C:\new'}),
        ("a=b", {"path": "a=b"}),
        ("メモ.txt\u3000\uff15", {"path": "メモ.txt", "max_lines": 5}),
        ('"会议 记录.txt"', {"path": "会议 记录.txt"}),
    ],
)
def test_arguments_are_parsed(rest: str, arguments: dict[str, Any]) -> None:
    if arguments.get("dry_run") == "b":
        assert problems(READ, rest) == ["dry_run: must be true or false, not 'b'"]
    else:
        assert READ.read(rest) == arguments


@pytest.mark.parametrize(
    ("rest", "text"),
    [
        ("hello world", "hello world"),
        ("  two  spaces".strip(), "two  spaces"),
        ("it's 'quoted' and \"so on\"", "it's 'quoted' and \"so on\""),
        ("'tis fine", "'tis fine"),
        ('"all of it"', "all of it"),
        ('"half of it" is quoted', '"half of it" is quoted'),
        ("use --verbose please", "use --verbose please"),
        ("x=1", "x=1"),
        ("text=1", "1"),
        ('--text "a b"', "a b"),
        ("-- --text", "--text"),
        ('{"text": "a"}', "a"),
        ("first\nsecond", "first\nsecond"),
        ("今日は\u3000いい天気", "今日は\u3000いい天気"),
    ],
)
def test_the_only_text_parameter_takes_everything_after_the_name(rest: str, text: str) -> None:
    assert SAY.read(rest) == {"text": text}


def test_the_last_text_parameter_takes_the_rest() -> None:
    assert NOTE.read("Today it  is fine") == {"title": "Today", "text": "it  is fine"}
    assert NOTE.read("--title Today it is fine") == {"title": "Today", "text": "it is fine"}
    assert NOTE.read("--text fine Today it is") == {"title": "Today it is", "text": "fine"}


def test_a_word_after_a_flag_sets_it() -> None:
    send = command({"dry_run": {**FLAG, "default": False}, "to": TEXT})
    assert send.read("--dry-run false ada") == {"dry_run": False, "to": "ada"}
    assert send.read("--dry-run Yes ada") == {"dry_run": True, "to": "ada"}
    for rest, to in (("--dry-run -- no", "no"), ('--dry-run "no"', "no"), ("--dry-run 0", "0")):
        assert send.read(rest) == {"dry_run": True, "to": to}


def test_a_list_as_the_last_parameter_takes_each_remaining_token() -> None:
    remove = command({"force": {**FLAG, "default": False}, "paths": {"type": "array", "items": TEXT}})
    assert remove.read('--force a,b "c d" [e].txt') == {"force": True, "paths": ["a,b", "c d", "[e].txt"]}
    assert remove.read("--no-force [e].txt") == {"force": False, "paths": ["[e].txt"]}
    add = command({"numbers": {"type": "array", "items": INTEGER}})
    assert add.read("1 2 3") == add.read("[1, 2, 3]") == {"numbers": [1, 2, 3]}
    assert problems(add, "1 two") == ["numbers: must be an integer, not 'two'"]


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "number"}, "1.5", 1.5),
        ({"type": "number"}, "2", 2),
        ({"type": "number"}, "-1e3", -1000.0),
        ({"enum": ["c", "f"]}, "f", "f"),
        ({"enum": [1, 2]}, "2", 2),
        ({"const": "x"}, "x", "x"),
        ({"anyOf": [INTEGER, {"type": "null"}]}, "3", 3),
        ({"anyOf": [INTEGER, {"type": "null"}]}, "null", None),
        ({"anyOf": [TEXT, {"type": "null"}]}, "null", "null"),
        ({"anyOf": [INTEGER, TEXT]}, "3", "3"),
        ({"type": ["integer", "boolean"]}, "true", True),
        ({"type": ["integer", "boolean"]}, "1", 1),
        ({"type": "object"}, '{"a":1}', {"a": 1}),
        ({}, "[1]", [1]),
        ({}, "plain", "plain"),
        ({"$ref": "#/$defs/n"}, "7", 7),
        ({"allOf": [{"$ref": "#/$defs/n"}], "default": 1}, "7", 7),
        ({"$ref": "#/$defs/round"}, "7", 7),
        ({"$ref": "https://example.com/x"}, "7", 7),
    ],
)
def test_a_text_is_converted_to_the_type_of_the_schema(schema: Any, text: str, value: Any) -> None:
    defs = {"n": {"$ref": "#/$defs/m"}, "m": INTEGER, "round": {"$ref": "#/$defs/round"}}
    created = command({"x": schema, "y": {**INTEGER, "default": 1}}, ["x"], **{"$defs": defs})
    read = created.read(f"x='{text}'")["x"]
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("\uff11\uff12", 12),
        ("\u0663\u0664", 34),
        ("\uff0d\uff15", -5),
        ("\uff11\uff0e\uff15", 1.5),
        ("1e\u0968", 100.0),
    ],
)
def test_digits_of_any_script_are_accepted(text: str, value: float) -> None:
    assert command({"x": {"type": "number"}}).read(text) == {"x": value}


@pytest.mark.parametrize(
    "text", ["1.5", "NaN", "1_000", "", "9" * 5000, "0x10", "one", "true", "10²", "①", "½", "二"]
)
def test_text_that_is_not_an_integer_is_rejected(text: str) -> None:
    assert problems(command({"x": INTEGER}), f"x='{text}'")[0].startswith("x: must be an integer, not '")


@pytest.mark.parametrize("text", ["nan", "inf", "1e999", "1,5", "1.2.3"])
def test_text_that_is_not_a_number_is_rejected(text: str) -> None:
    assert problems(command({"x": {"type": "number"}}), text) == [f"x: must be a number, not {text!r}"]


def test_all_problems_are_reported_together_with_their_parameters() -> None:
    assert problems(READ, "--max-lines many --dry-run=maybe --colour red --tags") == [
        "there is no parameter 'colour' (position 34)",
        "tags: a value must follow --tags (position 53)",
        "max_lines: must be an integer, not 'many'",
        "dry_run: must be true or false, not 'maybe'",
    ]
    assert problems(READ, "") == ["path: is missing"]
    assert problems(READ, "path=a path=b") == ["path: is given 2 times"]
    assert problems(READ, "a --max-lines") == ["max_lines: a value must follow --max-lines (position 14)"]
    assert problems(READ, "a --max-lines --dry-run") == [
        "max_lines: a value must follow --max-lines (position 14)"
    ]
    assert problems(command({"n": INTEGER}), "1 2 3") == [
        "'2' at position 3 and 1 more: there is no parameter for it"
    ]


def test_values_are_validated_against_the_schema() -> None:
    created = command(
        {"n": {"type": "integer", "minimum": 1}, "day": {"type": "string", "pattern": "^[a-z]+$"}}
    )
    assert len(problems(created, "0 MON")) == 2
    assert all(problem.startswith(("n: ", "day: ")) for problem in problems(created, "0 MON"))
    assert created.read("1 mon") == {"n": 1, "day": "mon"}


@pytest.mark.parametrize(
    ("rest", "problem"),
    [
        ('"open', 'the quote " at position 1 is not closed'),
        ("a 'open", "the quote ' at position 3 is not closed"),
        ('path="open', 'the quote " at position 6 is not closed'),
        ('"a"b', "white space must follow the quote at position 3"),
    ],
)
def test_unbalanced_quotes_are_rejected(rest: str, problem: str) -> None:
    assert problems(READ, rest) == [problem]


@pytest.mark.parametrize(
    "rest",
    ["{", '{"path": }', '{"path": "a", "path": "b"}', '{"path": NaN}', '{"path": "\\ud800"}', '{"a":1} x'],
)
def test_invalid_or_ambiguous_json_is_rejected(rest: str) -> None:
    assert problems(READ, rest)[0].startswith("this is not a JSON object: ")


def test_unknown_names_in_a_json_object_are_rejected() -> None:
    assert problems(READ, '{"path": "a", "lines": 3}') == ["there is no parameter 'lines'"]


def test_additional_properties_accept_unknown_names() -> None:
    created = command({"a": INTEGER}, additionalProperties=INTEGER)
    assert created.read("1 --b 2") == created.read('{"a": 1, "b": 2}') == {"a": 1, "b": 2}
    assert problems(created, "1 --b x") == ["b: must be an integer, not 'x'"]


def test_a_command_without_a_schema_takes_no_arguments() -> None:
    assert Command("do").read("") == {}
    assert problems(Command("do"), "something")


def test_names_that_differ_only_in_dashes_are_matched_exactly() -> None:
    created = command({"a_b": INTEGER, "a-b": INTEGER})
    assert created.read("--a_b 1 --a-b 2") == {"a_b": 1, "a-b": 2}


@pytest.mark.parametrize(
    "schema",
    [{"properties": 5}, {"properties": {"x": 5}}, {"required": 3}, {"required": [["x"], "x"]}, {"$ref": 1}],
)
def test_an_invalid_schema_breaks_nothing(schema: dict[str, Any]) -> None:
    created = Command("do", "", schema)
    assert created.usage()
    try:
        created.read("x=1")
    except CommandSyntaxError:
        return


class Place(BaseModel):
    city: str
    zip: int | None = None


@function_tool
def weather(place: Place, unit: Literal["c", "f"] = "c", days: list[int] | None = None) -> str:
    """Tell the weather."""
    return f"{place} {unit} {days}"


def test_the_schemas_of_the_sdk_are_supported() -> None:
    created = Command("weather", "", weather.params_json_schema)
    assert created.usage() == "/weather PLACE [--unit c|f] [--days DAYS]"
    assert created.read('place=\'{"city": "Oslo", "zip": null}\' unit=f --days 1 --days 2') == {
        "place": {"city": "Oslo", "zip": None},
        "unit": "f",
        "days": [1, 2],
    }
    assert created.read('{"place": {"city": "Oslo", "zip": 1}}') == {
        "place": {"city": "Oslo", "zip": 1},
        "days": None,
    }
    assert problems(created, "Oslo --unit k") == [
        "place: must be a JSON object, not 'Oslo'",
        "unit: must be one of c, f, not 'k'",
    ]


def test_very_many_arguments_are_each_read_once() -> None:
    created = command({"numbers": {"type": "array", "items": INTEGER}})
    many = 100_000
    assert created.read("1 " * many) == {"numbers": [1] * many}
    listed = {"enum": [f"c{number}" for number in range(1000)]}
    assert command({"x": {"type": "array", "items": listed}}).read("c999 " * many) == {"x": ["c999"] * many}
    assert len(problems(READ, "--what a " * many)) == 21
    assert problems(READ, '"' + 'x\\"' * many)
    assert SAY.read('"' * many) == {"text": '"' * many}


def test_large_and_deeply_nested_json() -> None:
    text = "x" * 1_000_000
    assert SAY.read(json.dumps({"text": text})) == {"text": text}
    assert "too deeply" in problems(SAY, '{"text": ' + "[" * 100_000)[0]
    assert problems(command({"x": TEXT}), '{"x": ' + "[" * 900 + "]" * 900 + "}")
