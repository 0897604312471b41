# ruff: noqa: RUF001
from __future__ import annotations

import json
import math
from typing import Any

import pytest

from kantan_agents import parse_structured_output
from kantan_agents.models.structured.parsing.parse import parsed_values
from kantan_agents.models.structured.parsing.tolerant import Partial

NEST = 10_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"step": 1, "reason": "ok"}', {"step": 1, "reason": "ok"}),
        (' \n\t{"a": 1}\u3000\n', {"a": 1}),
        ("{}", {}),
        (
            '{"a": {"b": [1, 2.5, -3e2, true, false, null]}}',
            {"a": {"b": [1, 2.5, -300.0, True, False, None]}},
        ),
        ('{"a": 1, "a": 2}', {"a": 2}),
        (r'{"a": "\ud83d\ude00 \u3042"}', {"a": "😀 あ"}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('```\n{"a": 1}\n```', {"a": 1}),
        ('``` {"a": 1} ```', {"a": 1}),
        ('```json{"a":1}```', {"a": 1}),
        ('````json\n{"a": 1}\n````', {"a": 1}),
        ('Here {you} are:\n```json\n{"a": 1}\n```\nAny {questions}?', {"a": 1}),
        ('```python\nd = {1}\n```\n```json\n{"a": 1}\n```', {"a": 1}),
        ('```json\n{"a": 1}\n```\n```json\n{"a": 2}\n```', {"a": 1}),
        ('```json\n{"md": "```js\\nx\\n```"}\n``` {x}', {"md": "```js\nx\n```"}),
        ('Look {x}:\n```json\n{"md": "a ``` b"}\n```', {"md": "a ``` b"}),
        ('The answer is {"a": {"b": 1}}, I think.', {"a": {"b": 1}}),
        ('結果は以下の通りです。{"手順": 2, "理由": "完了"} 以上です。', {"手順": 2, "理由": "完了"}),
        ('好的，结果如下：{"结果": "成功"}。请查收！', {"结果": "成功"}),
        ('[{"a": 1}]', {"a": 1}),
        ('```JSON\n{"a": 1}\n```', {"a": 1}),
        ('```javascript\n{"a": 1}\n```', {"a": 1}),
        ('~~~json\n{"a": 1}\n~~~', {"a": 1}),
        ('"{}"', {}),
        ('{"a": "}{"}', {"a": "}{"}),
        ('x {"a": "}{"} y', {"a": "}{"}),
        ('<answer>{"a": 1}</answer>', {"a": 1}),
        ('<think>no braces here</think>{"a": 1}', {"a": 1}),
        (
            '{"url": "https://example.org//a#b", "c": "/* no */"}',
            {"url": "https://example.org//a#b", "c": "/* no */"},
        ),
        ('<think>```{"a": 0}```</think>{"a": 1}', {"a": 1}),
    ],
)
def test_the_three_steps_find_strict_json(text: str, expected: dict[str, Any]) -> None:
    assert parse_structured_output(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n",
        "I cannot do that.",
        "申し訳ありませんが、できません。",
        "{",
        "}",
        "}{",
        "```",
        "```json\n```",
        '"just a string"',
        "[1, 2, 3]",
        "null",
        "42",
        r"\frac{a}{b} and x_{1} and \sqrt{2}",
        "Hello {{ name }}, this is {{user.name}} and ${x}.",
        "int main() { return 0; }",
        "void f(){g();if(x){h(1);}}",
        "{...}",
        "the set {1, 2, 3} and {a, b}",
        "{note: this is only prose}",
        '{"a": }',
        '{"a"',
        '{"a":',
        '{"a": "unfin',
        '{"a": -',
        '{"a": 12',
        "[" * NEST + "]" * NEST,
        "{" * NEST + "}" * NEST,
        '{"a": ' * NEST,
        "[" * NEST + '{"a": ' * NEST,
        '{"a": {"b": ' + "1" * 5_000 + "}}",
    ],
)
def test_a_text_without_an_object_gives_none(text: str) -> None:
    assert parse_structured_output(text) is None
    assert list(parsed_values(text)) == []


def test_the_first_of_several_objects_is_returned() -> None:
    assert parse_structured_output('For example {"a": 1}, or {"b": 2}.') == {"a": 1}


def test_the_first_of_several_objects_that_fits_is_returned() -> None:
    text = 'A reply looks like {"step": 1}. Mine is {"step": 3, "reason": "done",} as {"x": 2} shows.'
    assert parse_structured_output(text, lambda found: "reason" in found) == {"step": 3, "reason": "done"}
    assert parse_structured_output(text, lambda found: "x" in found) == {"x": 2}
    assert parse_structured_output(text, lambda _: False) == {"step": 1}
    assert parse_structured_output("no", lambda _: True) is None


def test_an_example_in_a_code_block_does_not_hide_the_answer() -> None:
    text = '```json\n{"example": 1}\n```\n```json\n{"answer": 2}\n```'
    assert parse_structured_output(text, lambda found: "answer" in found) == {"answer": 2}


def test_an_exception_of_fits_propagates() -> None:
    def fits(_: dict[str, Any]) -> bool:
        raise LookupError

    with pytest.raises(LookupError):
        parse_structured_output('{"a": 1}', fits)


def test_candidates_are_yielded_lazily_and_only_once() -> None:
    seen: list[dict[str, Any]] = []

    def fits(found: dict[str, Any]) -> bool:
        seen.append(found)
        return "b" in found

    text = '```json\n{"a": 1}\n``` {"b": 2} {"c": 3}'
    parse_structured_output(text, fits)
    assert seen == [{"a": 1}, {"b": 2}]
    assert list(parsed_values(text)) == [{"a": 1}, {"b": 2}, {"c": 3}]
    assert list(parsed_values('{"a": {"b": {}}}')) == [{"a": {"b": {}}}]
    assert list(parsed_values('x {"a": {"b": {}}} y')) == [{"a": {"b": {}}}]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[1, 2]", [[1, 2]]),
        ('[{"a": 1}, {"a": 2}]', [[{"a": 1}, {"a": 2}], {"a": 1}, {"a": 2}]),
        ('[{"a": 1}]', [[{"a": 1}], {"a": 1}]),
        ('{"a": [1]}', [{"a": [1]}]),
        ('So: {"a": [1]}.', [{"a": [1]}]),
        ("```json\n[1]\n```", [[1]]),
        ('```json\n[1]\n```\n```json\n{"a": [2]}\n```', [{"a": [2]}, [1]]),
        ("The list is [1, [2]].", [[1, [2]]]),
        ("As in [1], it is [2, 3,].", [[1], [2, 3]]),
        ('First [1], then {"a": [2]}, then [3].', [{"a": [2]}, [1], [3]]),
        ("['a', 'b',]", [["a", "b"]]),
        ("［＂a＂，1］", [["a", 1]]),
        ('"[1, 2]"', [[1, 2]]),
        (r'"[\"a\"]"', [["a"]]),
        ('["a", "b", "c', [["a", "b"]]),
        ("[", []),
        ("[]", [[]]),
        ("<think>[0]</think> [1] and [2]", [[1], [2]]),
        ("[1, undefined, 2]", []),
    ],
)
def test_arrays_are_candidates_on_request(text: str, expected: list[Any]) -> None:
    found = [v.value if isinstance(v, Partial) else v for v in parsed_values(text, arrays=True)]
    assert found == expected


@pytest.mark.parametrize(
    ("text", "whole", "partial"),
    [
        ('{"a": 1, "b": [1, 2', [], [{"a": 1, "b": [1]}]),
        ('{"a": 1, "b": tr', [], [{"a": 1}]),
        ('{"a": 1, "b": someone}', [], [{"a": 1}]),
        ('{"a": 1, ...}', [], [{"a": 1}]),
        ('{"a": 1, ...} and {"a": 2,}', [{"a": 2}], [{"a": 1}]),
        ("{'a': 1, /* all */}", [{"a": 1}], []),
        ('[{"a": 1}, {"a": 2', [{"a": 1}], []),
    ],
)
def test_partial_values_are_marked(text: str, whole: list[Any], partial: list[Any]) -> None:
    found = list(parsed_values(text))
    assert [value for value in found if not isinstance(value, Partial)] == whole
    assert [value.value for value in found if isinstance(value, Partial)] == partial


def test_nonstandard_constants_are_read_tolerantly() -> None:
    found = parse_structured_output('{"a": NaN, "b": Infinity, "c": -Infinity}')
    assert found is not None
    assert math.isnan(found.pop("a"))
    assert found == {"b": math.inf, "c": -math.inf}


def test_deep_nesting_is_left_to_the_standard_decoder() -> None:
    text = '{"a":' * 300 + "1" + "}" * 300
    assert parse_structured_output(text) == json.loads(text)
    assert parse_structured_output(text + " {x}") is None
