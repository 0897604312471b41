# ruff: noqa: RUF001
from __future__ import annotations

import math
from typing import Any

import pytest

from kantan_agents import parse_structured_output
from kantan_agents.models.structured.parsing.parse import parsed_values
from kantan_agents.models.structured.parsing.tolerant import Partial, tolerant_values
from kantan_agents.models.structured.parsing.tolerant_tokens import MAX_DEPTH, MAX_STEPS, TokenSource

REPLIES: list[tuple[str, dict[str, Any] | None]] = [
    # Several objects, and other text with braces.
    ('Either {"a": 1} or {"a": 2}', {"a": 1}),
    ('{"a": 1}{"a": 2}', {"a": 1}),
    ('{"a": 1}\n{"a": 2}\n', {"a": 1}),
    ('{"a": 1}}', {"a": 1}),
    ('{"a": 1} is for {you}.', {"a": 1}),
    ('{{ name }} says {"a": 1}', {"a": 1}),
    ('Hello {{"x"}} {"a": 1}', {"a": 1}),
    (r'With $\frac{a}{b}$ and x_{1} it is {"a": 1}.', {"a": 1}),
    ('function f(x) { return {x}; }\nf(1)\n{"a": 1}', {"a": 1}),
    ('for (;;) { if (x) { y("}"); } } gives {"a": 1}', {"a": 1}),
    ('dict comprehension {k: v for k, v in x} then {"a": 1}', {"a": 1}),
    ('A set {1, 2} or {"x", "y"}; then {"a": 1}', {"a": 1}),
    ('[{"a": 1}, {"a": 2}]', {"a": 1}),
    ('{"a": 1, {"b": 2}', {"b": 2}),
    ('注釈｛例｝のあと {"a": 1}', {"a": 1}),
    ('f-string {x!r:>{10}} and {"a": 1} {', {"a": 1}),
    # Commas.
    ('{"a": 1,}', {"a": 1}),
    ('{"a": [1, 2,], "b": {"c": 1,},}', {"a": [1, 2], "b": {"c": 1}}),
    ('{"a": 1,, "b": [1,,2]}', {"a": 1, "b": [1, 2]}),
    ('{,"a": 1}', {"a": 1}),
    ('{"a": 1 "b": 2}', {"a": 1, "b": 2}),
    ('{"a": "x"\n "b": "y"\n}', {"a": "x", "b": "y"}),
    ('{"a": {"x": 1} "b": [{"y": 1} {"y": 2}]}', {"a": {"x": 1}, "b": [{"y": 1}, {"y": 2}]}),
    ('{"a": [1 2], "b": 3}', {"b": 3}),
    # Quotes.
    ("{'a': 'x', 'b': ['y', 'z']}", {"a": "x", "b": ["y", "z"]}),
    ("{'a': 'it's what they'd say'}", {"a": "it's what they'd say"}),
    ("{'a': \"it's\", 'b': 'say \"hi\"'}", {"a": "it's", "b": 'say "hi"'}),
    (r"{'a': 'it\'s', 'b': 'c:\\d'}", {"a": "it's", "b": "c:\\d"}),
    ("{“a”: “x”, “b”: 1}", {"a": "x", "b": 1}),
    ("{‘a’: ‘don’t’}", {"a": "don’t"}),
    ('{"a": "he said "hi" to her"}', {"a": 'he said "hi" to her'}),
    ('{"a": "he said "hi", then left", "b": 1}', {"a": 'he said "hi", then left', "b": 1}),
    ('{"a": ["the "x" thing", "y"]}', {"a": ['the "x" thing', "y"]}),
    ('{"a": "x {"b": 1} y"}', {"b": 1}),
    ('{"a": "“quoted”",}', {"a": "“quoted”"}),
    ('{"a": "",}', {"a": ""}),
    # Bare keys and words.
    ("{a: 1, b_2: 'x', $c: null, d-e: true}", {"a": 1, "b_2": "x", "$c": None, "d-e": True}),
    ("{1: 'one', 2: 'two'}", {"1": "one", "2": "two"}),
    ("{名前: '太郎'}", {"名前": "太郎"}),
    ("{'a': True, 'b': False, 'c': None}", {"a": True, "b": False, "c": None}),
    ('{"a": undefined, "b": yes, "c": hello world, "d": 1}', {"d": 1}),
    ('{"a": , "b": 1}', {"b": 1}),
    ('{"a": , "b": }', None),
    ('{"a": 0x10, "b": 1_000, "c": 1/2, "d": 007, "e": +1, "f": 12 USD, "g": 1}', {"g": 1}),
    ('{"a": 1,000, "b": 2}', None),
    ('{"a": [1, what, 3], "b": 1}', {"b": 1}),
    ('{"a": [1, 2, ...], "b": 1, ...}', {"b": 1}),
    ('{"a": 1, "a": what}', None),
    ('{"a": 1, "a": 2,}', {"a": 2}),
    # Comments.
    ('{"a": 1, // one\n "b": 2 /* two */, # three\n}', {"a": 1, "b": 2}),
    ('{/* {"x": 1} */ "a": "y" // "z"\n}', {"a": "y"}),
    (
        '{"url": "https://example.org//a#b", "c": "/* no */",}',
        {"url": "https://example.org//a#b", "c": "/* no */"},
    ),
    ('{# {"a": 1}', {"a": 1}),
    # Raw characters and escapes in strings.
    ('{"a": "one\ntwo\tthree\x01"}', {"a": "one\ntwo\tthree\x01"}),
    (r'{"a": "\d+ \. C:\Users", }', {"a": "\\d+ \\. C:\\Users"}),
    (r"{'a': '\u3042\ud83d\ude00\n'}", {"a": "あ😀\n"}),
    (r"""{'a': 'say "hi"\n\'', 'b': '\d\''}""", {"a": 'say "hi"\n\'', "b": "\\d'"}),
    (
        r'{"a": "one\ntwo\tthree\r\nfour", "b": "D:\\temp",}',
        {"a": "one\ntwo\tthree\r\nfour", "b": "D:\\temp"},
    ),
    (r'{"D:\work\build": {"b": 1}, "c": 2,}', {"c": 2}),
    (r'{"a": {"b": "\frac", "c": 1},}', {"a": {"c": 1}}),
    (r'{"a": "\tan x", "b": "\textbf{x}", "c": "x \nleq y", "d": "\rho", "e": "\u00zz", "f": 1,}', {"f": 1}),
    (r'{"a": "in C:\temp\new", "b": "see D:\new", "c": "\\nas\temp", "d": 1,}', {"d": 1}),
    (
        r"""{"a": "more or\nless", "b": "a\tanchor", "c": "C:\\temp",}""",
        {"a": "more or\nless", "b": "a\tanchor", "c": "C:\\temp"},
    ),
    (r'{"a": "Q:\nWhy?\nA:\nnext"', {"a": "Q:\nWhy?\nA:\nnext"}),
    (r'{"a": "\tan", "b": "C:\new"}', {"a": "\tan", "b": "C:\new"}),
    ('{"code": "if (x) { y[0] }",}', {"code": "if (x) { y[0] }"}),
    ('{"html": "<think>a</think><b>{x}</b>",}', {"html": "<think>a</think><b>{x}</b>"}),
    # White space and brackets of other widths.
    ('\ufeff{"a":\u00a01,\u200b"b":\u30002,}', {"a": 1, "b": 2}),
    ("｛＂a＂：1，＂b＂：［1，2］｝", {"a": 1, "b": [1, 2]}),
    ("結果：｛“理由”：“完了”，“手順”：3｝です。", {"理由": "完了", "手順": 3}),
    ('{"a"：1，"b"："x：y，z"}', {"a": 1, "b": "x：y，z"}),
    # Truncated.
    ('{"a": 1, "b": "hel', {"a": 1}),
    ('{"a": 1, "b": 12', {"a": 1}),
    ('{"a": 1, "b": 1.', {"a": 1}),
    ('{"a": 1, "b": tru', {"a": 1}),
    ('{"a": 1, "b": true', {"a": 1, "b": True}),
    ('{"a": 1, "b"', {"a": 1}),
    ('{"a": 1, "b', {"a": 1}),
    ('{"a": 1, "b": [1, 2', {"a": 1, "b": [1]}),
    ('{"a": [{"b": 1}, {"b": 2, "c": "x', {"a": [{"b": 1}, {"b": 2}]}),
    ('{"a": {"b": {', None),
    ('{"a": 1, "b": "function() { return {x: 1}; ', {"a": 1}),
    ('```json\n{"a": 1, "b": [1, 2\n```\nThat is all.', {"a": 1, "b": [1, 2]}),
    ('Sure!\n```json\n{"a": 1, "b": "x', {"a": 1}),
    ('{"a": 1 /* not', {"a": 1}),
    # Think blocks.
    ('<think>{"a": 0}</think>{"a": 1}', {"a": 1}),
    ('<thinking>maybe {"a": 0}?</thinking>\n{"a": 1}', {"a": 1}),
    ('{"a": 0} no, </think> {"a": 1}', {"a": 1}),
    ('<think>x</think>{"a": 1}<think>{"a": 0}', {"a": 1}),
    ('<think>so {"a": 0} and {"a": 1', None),
    ('<think>{ {</think>{"a": 1,}', {"a": 1}),
    ('{"a": ["</think>"], "b": {"c": 1}, "d": 2', {"a": ["</think>"], "b": {"c": 1}}),
    ("a <thinker> of {'a': 1}", {"a": 1}),
    # JSON in JSON.
    (r'"{\"a\": \"x\"}"', {"a": "x"}),
    (r'"{\"a\": 1,}"', {"a": 1}),
    (r"{\"a\": \"x\"}", {"a": "x"}),
    (r"{\n  \"a\": 1\n}", {"a": 1}),
    (r"{'': null, '\\': null}", {"": None, "\\": None}),
    (r'"\"{\\\"a\\\": 1}\""', None),
    # Other fences.
    ('```JSON\n{"a": 1,}\n```', {"a": 1}),
    ("```json5\n{a: 1}\n``` {x}", {"a": 1}),
    ("~~~\n{'a': 1}\n~~~", {"a": 1}),
    # Unrepairable errors.
    ('{"a": [1, 2}', None),
    ("{'a' 1}", None),
    ('{"a": 1; "b": 2}', None),
]


@pytest.mark.parametrize(("text", "expected"), REPLIES)
def test_replies_of_models_are_parsed(text: str, expected: dict[str, Any] | None) -> None:
    assert parse_structured_output(text) == expected


def test_constants_are_floats() -> None:
    (found,) = parsed_values("{a: [NaN, Infinity, -Infinity], b: 1}")
    assert math.isnan(found["a"].pop(0))
    assert found == {"a": [math.inf, -math.inf], "b": 1}


def test_values_before_the_answer_are_yielded_in_order() -> None:
    text = 'Like {"x": 1}; code { a: 1, } then {"z": 1,}.'
    assert list(parsed_values(text)) == [{"x": 1}, {"a": 1}, {"z": 1}]


def test_values_nested_too_deeply_are_skipped() -> None:
    def nested(levels: int) -> str:
        return "{'a':" * levels + "1" + "}" * levels

    assert parse_structured_output(nested(MAX_DEPTH)) is not None
    assert list(parsed_values(nested(MAX_DEPTH + 1) + '{"b": 2}')) == [{"b": 2}]
    assert parse_structured_output("{a:" * (MAX_DEPTH + 1) + "b: 1,") is None
    as_json = '{"a":' * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1)
    assert list(parsed_values(f'{{"x": {as_json},}} {as_json} {{"b": 2}}')) == [{"b": 2}]


HOSTILE = [
    "{",
    "}",
    "{}",
    '{"a":',
    "[",
    '"',
    '{"a" ',
    "```",
    "```{",
    "<think>",
    "</think>",
    "<think></think>",
    "<think>{",
    "/*",
    "{/*",
    "{//",
    "{#\n",
    '{"a":1,',
    "{'",
    '{"',
    "{“",
    "｛",
    "{a:",
    "{...",
    "{-",
    '{"a":"',
    "{'a':'",
    '{"a":"\\"',
    '{"a":1}',
    '{"a":1,}',
    '{"k":"v""k":',
    "\\",
    "{\\",
    " ",
    "{ ",
    "x",
]


def spent(text: str) -> int:
    source = TokenSource(text)
    for _ in tolerant_values(source, "{｛"):
        pass
    return source.spent


@pytest.mark.parametrize("unit", HOSTILE)
def test_work_is_linear_in_the_length(unit: str) -> None:
    for frame in ("%s", "```json\n%s\n```", '{"a": "%s', '{"a": "%s"}}', "{'a': [%s", "{%s"):
        some, twice = (spent(frame.replace("%s", unit * times)) for times in (200, 400))
        assert twice <= 2.2 * some + 200


@pytest.mark.parametrize("unit", HOSTILE)
def test_work_stays_within_the_budget(unit: str) -> None:
    assert spent(unit * 30_000) <= MAX_STEPS + 5_000  # what the last step cost that was still begun


def test_a_reply_damaged_in_every_line_is_parsed() -> None:
    text = '{"rows": [' + '{\'id\': 1, "tags": ["x", "y",],},\n' * 1_500 + "]}"
    found = parse_structured_output(text)
    assert found == {"rows": [{"id": 1, "tags": ["x", "y"]}] * 1_500}


def test_a_long_reply_with_one_error_is_cheap() -> None:
    rows = '{"id": 1, "tags": ["x", "y"]},\n' * 49_999 + "{}"
    source = TokenSource(f'{{"rows": [{rows}], "done": true,}}')
    ((_, _, found),) = tolerant_values(source, "{｛")
    assert len(found["rows"]) == 50_000
    assert found["done"] is True
    assert source.spent < MAX_STEPS / 2


AMBIGUOUS = [
    *(r'"D:\work\build"', r'"in D:\temp"', r'"\\nas\new"', r'"\d+\t"'),  # a path or pattern, or an escape
    *(r'"\frac{1}{2}"', r'"\beta"', r'"\rho"', r'"\tan"', r'"\nleq"'),  # LaTeX, or a control character
    *(r'"\x41"', r'"\1"', r'"\alpha"', r'"\u00zz"'),  # an escape of Python or JavaScript, or text
    *('"a" "b"', '"a" + "b"', '"a"+"b"'),  # two strings, or one with quotes in it
    *('"a" + b + "c"', '"a" if b else "c"'),  # an expression, or a string with quotes in it
    *('"""a = 1"""', '""a""'),  # a string with three quotes, or one that starts with a quote
]


@pytest.mark.parametrize("value", AMBIGUOUS)
@pytest.mark.parametrize("wrong", ["{{'n': 1, 'a': {0}}}", '{{"n": 1, "a": {0},}}', '{{n: 1, "a": [{0}]}}'])
def test_a_value_with_more_than_one_reading_is_omitted(value: str, wrong: str) -> None:
    (found,) = parsed_values(wrong.format(value))
    assert isinstance(found, Partial)  # so the model is asked again
    assert found.value == {"n": 1}
