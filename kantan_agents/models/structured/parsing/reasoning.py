"""Skips reasoning in replies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from kantan_agents.models.structured.parsing.tolerant import Partial, value_at
from kantan_agents.models.structured.parsing.tolerant_tokens import OPENERS, BudgetSpentError, TokenSource

_SQUARE = r"\["
_MOST_MARKS = 2_000
_MOST_BRACKETS = 200_000  # each takes up to 0.25 microseconds

REASONING_TAGS: Final = {
    "think": "think",
    "thinking": "think",
    "thought": "think",
    "thoughts": "think",
    "reasoning": "reasoning",
    "reflection": "reflection",
    "scratchpad": "scratchpad",
    "scratch_pad": "scratchpad",
    "analysis": "analysis",
    "antthinking": "think",
    "inner_monologue": "inner_monologue",
}
"""The tags around reasoning, and their closing tags.

They may have prefixes, attributes, and suffixes (``think:opensource``, ``think_never_used_51bc``). Tags that
users may want, such as ``<plan>``, are omitted.
"""
REASONING_MARKS: Final = (
    (r"\[think(?:ing)?\]", r"\[/think(?:ing)?\]"),
    (r"◁think▷", r"◁/think▷"),
    (
        r"<\|channel\|>(?:analysis|commentary)",
        r"<\|channel\|>final(?:[^<]{0,100}(?:<\|constrain\|>[^<]{0,100})?<\|message\|>)?",
    ),
    (r"<\|channel>thought", r"<channel\|>"),
    (r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),
    (r"<\|start_thinking\|>", r"<\|end_thinking\|>"),
    (r"<\|inner_prefix\|>", r"<\|inner_suffix\|>"),
    (r"<unused94>thought", r"<unused95>"),
    (r"<\|open\|>think<\|sep\|>", r"<\|close\|>think<\|sep\|>(?:\s{0,100}<\|open\|>response<\|sep\|>)?"),
)
"""Patterns of the other marks before and after reasoning."""


def _marks_with(bracket: str) -> str:
    marks = [
        (f"{kind}{number}", mark)
        for number, pair in enumerate(REASONING_MARKS)
        for kind, mark in zip(("open", "close"), pair, strict=True)
    ]
    return "|".join(f"(?P<{name}>{mark[len(bracket) :]})" for name, mark in marks if mark.startswith(bracket))


# Sorted by the first character, for fast searches.
_MARK = re.compile(
    rf"<(?:(?P<end>/)?(?:[\w.-]{{1,30}}:)?(?P<tag>{'|'.join(REASONING_TAGS)})"
    rf"(?:_never_used_\w{{1,40}}|:[\w.-]{{1,30}})?(?:\s[^<>]{{0,300}})?(?<!/)>"
    rf"|{_marks_with('<')})|\[(?:{_marks_with(_SQUARE)})|◁(?:{_marks_with('◁')})",
    re.IGNORECASE,
)
# The channels of gpt-oss without their marks.
_BARE_CHANNELS = ("analysis", "commentary")
_BARE_FINAL = "assistantfinal"


def reply_in(text: str) -> str:
    """Return the part of a model's reply that is not reasoning, in linear time.

    It follows the last closing mark, even an unopened one: many servers omit the opening mark. Reasoning that
    never closes is not a reply. Marks in JSON strings do not count. A sentence may mention an opening mark,
    but not a closing one, which may end a draft.
    """
    if text.lstrip().startswith(_BARE_CHANNELS) and (final := text.rfind(_BARE_FINAL)) >= 0:
        text = text[final + len(_BARE_FINAL) :]
    if sum(map(text.count, "<[◁")) > _MOST_BRACKETS:
        return ""
    marks = list(islice(_MARK.finditer(text), _MOST_MARKS))
    if not marks:
        return text
    if len(marks) == _MOST_MARKS:
        return ""
    start, end = _bounds(TokenSource(text), marks)
    return text[start:end]


def _bounds(source: TokenSource, marks: list[re.Match[str]]) -> tuple[int, int]:
    start, pos = 0, 0
    left = iter(marks)
    for mark in left:
        if mark.start() < pos:
            continue
        if (after := _end_of_json_with(mark, source, pos)) is not None:
            pos = after
            continue
        form, closes = _kind(mark)
        if not closes and _is_mentioned(mark):
            continue
        closing = mark if closes else _closing(form, left)
        if closing is None:
            return start, mark.start()
        start = pos = closing.end()
    return start, source.end


def _closing(form: str, marks: Iterator[re.Match[str]]) -> re.Match[str] | None:
    """Return the next mark that closes a form or is unopened."""
    inside: set[str] = set()
    for mark in marks:
        other, closes = _kind(mark)
        if closes and other not in inside:
            return mark
        if other != form:
            inside.add(other)
    return None


def _is_mentioned(mark: re.Match[str]) -> bool:
    """Return whether a sentence mentions a mark: "in the <analysis> section", "the tag `<think>`"."""
    text, start, end = mark.string, mark.start(), mark.end()
    if text[start - 1 : start] in tuple("`\"'") and text[start - 1] == text[end : end + 1]:
        return "``" not in (text[max(start - 2, 0) : start], text[end : end + 2])
    is_behind_word = (
        start > 1 and text[start - 1] == " " and (text[start - 2].isalnum() or text[start - 2] in ",;")
    )
    after = text[end : end + 2]
    return is_behind_word and (after[:1] in tuple(",.;:)") or (after[:1] == " " and after[1:].islower()))


def _kind(mark: re.Match[str]) -> tuple[str, bool]:
    if (tag := mark["tag"]) is not None:
        return REASONING_TAGS[tag.lower()], mark["end"] is not None
    name = str(mark.lastgroup)
    return name.removeprefix("open").removeprefix("close"), name.startswith("close")


def _end_of_json_with(mark: re.Match[str], source: TokenSource, pos: int) -> int | None:
    """Return the end of the next JSON that has the mark in a string."""
    try:
        source.spend(1)
        while (start := min(source.find(bracket, pos) for bracket in OPENERS)) < mark.start():
            value, pos = value_at(source, start)
            if pos > mark.start() and any(mark[0] in text for text in _strings(value)):
                return pos
    except BudgetSpentError:  # from here on, every mark counts
        pass
    return None


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Partial):
        yield from _strings(value.value)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)
