# ruff: noqa: RUF001
from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

import attrs
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import parse_structured_output
from kantan_agents.models.structured.parsing.parse import parsed_values
from kantan_agents.models.structured.parsing.tolerant import Partial

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12)
    | st.text(alphabet="\"'“”‘’＂\\,:}]/*#\n\t a", max_size=8)
)
KEYS = st.text(max_size=6) | st.sampled_from(["a", "b_1", "$x", "reason", "it's", 'the "x"', "a:b"])


def objects(scalars: st.SearchStrategy[Any] = SCALARS, keys: st.SearchStrategy[str] = KEYS) -> Any:
    values = st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
        max_leaves=10,
    )
    return st.dictionaries(keys, values, max_size=5)


PROSE = st.text(alphabet=st.characters(exclude_characters="{}`"), max_size=40)


def same(one: Any, other: Any) -> bool:
    """Return whether two values are equal including their types: 1, 1.0 and True differ."""
    return repr(one) == repr(other)


@given(
    objects(),
    PROSE,
    PROSE,
    st.sampled_from(
        [("", ""), ("```json\n", "\n```"), ("```\n", "\n```"), ("```JSON\n", "\n```"), ("~~~\n", "\n~~~")]
    ),
    st.sampled_from([None, 0, 2, "\t"]),
    st.booleans(),
)
def test_an_object_is_found_in_prose_and_fences(
    value: dict[str, Any], before: str, after: str, fence: tuple[str, str], indent: Any, is_ascii: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=is_ascii)
    found = parse_structured_output(before + fence[0] + text + fence[1] + after)
    assert same(found, value)


@attrs.frozen
class Damage:
    """A spelling of a value that is not quite JSON."""

    quote: str
    end: str
    gap: str
    comma: str
    colon: str
    brackets: str
    bare: bool
    raw: bool
    python: bool
    trailing: bool

    def write(self, value: Any) -> str:
        gap, end = self.gap, self.gap + self.comma * self.trailing + self.gap
        if isinstance(value, dict):
            members = [
                f"{gap}{self.key(key)}{self.colon}{gap}{self.write(inner)}" for key, inner in value.items()
            ]
            return (
                self.brackets[0] + f"{gap}{self.comma}".join(members) + end * bool(members) + self.brackets[1]
            )
        if isinstance(value, list):
            items = [gap + self.write(inner) for inner in value]
            return self.brackets[2] + f"{gap}{self.comma}".join(items) + end * bool(items) + self.brackets[3]
        if isinstance(value, str):
            return self.string(value)
        if self.python and (value is None or isinstance(value, bool)):
            return repr(value)
        return json.dumps(value)

    def key(self, key: str) -> str:
        return key if self.bare and re.fullmatch(r"[A-Za-z_$][\w$]*", key, re.ASCII) else self.string(key)

    def string(self, text: str) -> str:
        escaped = (
            "\\" + char
            if char in ("\\", self.quote, self.end)
            else f"\\u{ord(char):04x}"
            if char < " " and not self.raw
            else char
            for char in text
        )
        return self.quote + "".join(escaped) + self.end


GAPS = [
    "",
    " ",
    "\n  ",
    "\u00a0\ufeff",
    ' // it\'s "one", {x: 2}\n',
    "/* } ] */",
    " # one, ']'\n",
    "\u3000\u200b",
]
DAMAGES: st.SearchStrategy[Any] = st.builds(
    lambda quotes, brackets, **rest: Damage(quotes[0], quotes[1], brackets=brackets, **rest),
    quotes=st.sampled_from(['""', "''", "“”", "‘’", "＂＂"]),
    brackets=st.sampled_from(["{}[]", "｛｝［］"]),
    gap=st.sampled_from(GAPS),
    comma=st.sampled_from([",", "，"]),
    colon=st.sampled_from([":", "：", " : "]),
    bare=st.booleans(),
    raw=st.booleans(),
    python=st.booleans(),
    trailing=st.booleans(),
)


# In an object with full-width braces, a plain brace in a string would be the first brace of the three steps.
@given(
    objects(
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**63)
        | st.floats(allow_nan=False)
        | st.text(alphabet=st.characters(exclude_characters="{}"), max_size=12)
        | st.text(alphabet="\"'“”‘’＂\\,:]/*#\n\t a", max_size=8),
        st.text(alphabet=st.characters(exclude_characters="{}"), max_size=6)
        | st.sampled_from(["a", "b_1", "it's"]),
    ),
    DAMAGES,
    st.sampled_from([("", ""), ("```json\n", "\n```"), ("Sure! ", " Bye."), ("<think>So {x}.</think>", "")]),
)
def test_a_damaged_object_is_read_correctly(
    value: dict[str, Any], damage: Damage, around: tuple[str, str]
) -> None:
    found = parse_structured_output(around[0] + damage.write(value) + around[1])
    assert same(found, value)


PIECES = [
    *"{}[]\"'“”‘’＂,:：，｛｝［］\\/#*`.-1 \n\t",
    *(
        "```",
        "json",
        "//",
        "/*",
        "*/",
        '"a"',
        "'b'",
        "true",
        "None",
        "NaN",
        "1.5",
        "x",
        "...",
        "\\u12",
        "\\n",
    ),
    *("<think>", "</think>", '{"a": 1}', '{"b": [2', "\ufeff", "it's", '": "', '", "'),
]
SCRAPS = st.lists(st.sampled_from(PIECES), max_size=60).map("".join)


@given(st.text(max_size=200) | SCRAPS)
def test_no_text_raises_an_exception(text: str) -> None:
    found = parse_structured_output(text)
    assert found is None or isinstance(found, dict)
    assert all(isinstance(value, (dict, Partial)) for value in parsed_values(text))
    assert all(isinstance(value, (dict, list, Partial)) for value in parsed_values(text, arrays=True))


def json_object(text: str) -> dict[str, Any] | None:
    def refuse(name: str) -> NoReturn:
        raise ValueError(name)

    try:
        value = json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def three_steps(text: str) -> dict[str, Any] | None:
    """A straightforward implementation of the three specified steps."""
    stripped = text.strip()
    if stripped.startswith("{") and (value := json_object(stripped)) is not None:
        return value
    fences = [match.span() for match in re.finditer("`{3,}", text)]
    # A block without a value ends at the next fence. The first block with a value ends the search.
    for opening in range(0, len(fences), 2):
        for closing in range(opening + 1, len(fences)):
            content = text[fences[opening][1] : fences[closing][0]].removeprefix("json")
            if (value := json_object(content)) is not None:
                return value
    return json_object(text[text.find("{") : text.rfind("}") + 1]) if "{" in text else None


@given(
    st.lists(
        st.sampled_from(
            ["```", "````", "json", "\n", " ", '{"a": 1}', '{"b": "```"}', "{", "}", "x", '{"c": "}"}', "[1]"]
        ),
        max_size=14,
    ).map("".join)
    | SCRAPS
)
def test_the_result_is_that_of_the_three_steps(text: str) -> None:
    expected = three_steps(text)
    if expected is not None and (json_object(text.strip()) is not None or "think>" not in text):
        assert same(parse_structured_output(text), expected)


def is_part(part: Any, whole: Any) -> bool:
    """Return whether every value of ``part`` is at the same place in ``whole``."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            key in whole and is_part(value, whole[key]) for key, value in part.items()
        )
    if isinstance(part, list):
        return isinstance(whole, list) and len(part) <= len(whole) and all(map(is_part, part, whole))
    return same(part, whole)


@given(objects(), st.data(), st.sampled_from([None, 1]), st.booleans())
def test_a_truncated_object_gives_only_its_own_members(
    value: dict[str, Any], data: st.DataObject, indent: Any, is_ascii: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=is_ascii)
    for place in {data.draw(st.integers(0, len(text))) for _ in range(8)}:
        found = parse_structured_output(text[:place])
        assert found is None or is_part(found, value)


def scalars(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value, *(scalar for inner in value.values() for scalar in scalars(inner))]
    if isinstance(value, list):
        return [scalar for inner in value for scalar in scalars(inner)]
    return [value]


WORDS = {True: {"true", "True"}, False: {"false", "False"}, None: {"null", "None"}}


@given(SCRAPS)
def test_every_value_found_is_in_the_text(text: str) -> None:
    text = text.replace("\\", "")
    numbers = {float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", text)}
    for found in parsed_values(text, arrays=True):
        for scalar in scalars(found.value if isinstance(found, Partial) else found):
            if isinstance(scalar, str):
                assert scalar in text
            elif scalar is None or isinstance(scalar, bool):
                assert any(word in text for word in WORDS[scalar])
            else:
                assert "NaN" in text if math.isnan(scalar) else float(scalar) in numbers
