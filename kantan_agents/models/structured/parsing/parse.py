# ruff: noqa: RUF001 - brackets of both widths
"""``parse_structured_output`` (spec structured output, "JSON extraction")."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import attrs

from kantan_agents.models.structured.parsing.reasoning import reply_in
from kantan_agents.models.structured.parsing.strict_json import NOTHING, decode_at, unescape
from kantan_agents.models.structured.parsing.tolerant import Found, Partial, tolerant_values
from kantan_agents.models.structured.parsing.tolerant_tokens import TokenSource

_CLOSER = {"{": "}", "[": "]"}
_WIDE = {"{": "{｛", "[": "[［"}
_FENCE = re.compile("```+")
_TAG = re.compile(r"(?:json)?\s*")
_SPACE = re.compile(r"\s*")
_ESCAPED_JSON = re.compile(r'[{\[](?:\s|\\[nrt])*\\"')
_MAX_FENCES = 2_000  # takes a few ms; real replies have far fewer
_MAX_LONG_BLOCKS = 20  # a failed attempt costs more the later it starts


def parse_structured_output(
    text: str, fits: Callable[[dict[str, Any]], bool] | None = None
) -> dict[str, Any] | None:
    """Return the JSON object in a model's reply, or None if it contains no object.

    Reasoning that the server left in the reply is not part of it: the text up to the last closing tag, or
    reasoning that is never closed. A tag in a JSON string, or one that a sentence mentions, does not count.
    Known are:

    - tags, in any case and with attributes or prefixes: ``<think>``, ``<thinking>``, ``<thought>``,
      ``<thoughts>``, ``<antThinking>``, ``<inner_monologue>``, ``<reasoning>``, ``<reflection>``,
      ``<scratchpad>``, ``<scratch_pad>``, ``<analysis>``, ``[THINK]``, ``[THINKING]`` and ``◁think▷``;
    - the channels of gpt-oss, with and without their tokens;
    - the tokens of Gemma 4, MedGemma, OpenThinker, Command A, Apertus and Kimi K3.

    Three steps look for strictly valid JSON: the whole text; a block between code fences; the part from the
    first brace to the last. If they find nothing, a tolerant parser accepts what models actually send:
    several objects, trailing commas, other quotes and brackets, comments, Python literals, missing ends. It
    never invents data: a missing or unfinished value is omitted together with its key. So is a value that can
    be read in two ways where the JSON is damaged: a path or an escape (``"D:\\temp"``), LaTeX or a control
    character (``"\\frac"``), an escape of Python or text (``"\\x41"``), an expression or a string with quotes
    (``"a" + "b"``). In strictly valid JSON no value is ambiguous.

    The time is linear in the length, for any reply.

    Args:
        text: The model's reply; any str is allowed.
        fits: Called with each object; returns whether it is the wanted one. The first that fits is returned;
            if none fits, the result is the same as without ``fits``. Its exceptions propagate.

    Returns:
        The object, as ``json.loads`` would return it. If a key is repeated, the last value counts.
    """
    first: dict[str, Any] | None = None
    for found in parsed_values(text):
        value: dict[str, Any] = found.value if isinstance(found, Partial) else found
        if fits is None or fits(value):
            return value
        if first is None:
            first = value
    return first


def parsed_values(text: str, *, arrays: bool = False) -> Iterator[Any]:
    """Lazily yield all candidate values, best first; a ``Partial`` for an incomplete one.

    ``arrays``: also arrays outside of objects, after the objects of a step.
    """
    return _values(text, "{[" if arrays else "{")


@attrs.frozen
class _Head:
    """The value at the first bracket, for the first and third step."""

    opener: str
    start: int
    end: int
    value: Any

    @classmethod
    def of(cls, text: str, opener: str) -> _Head:
        start = text.find(opener)
        if start < 0:
            return cls(opener, 0, 0, NOTHING)
        value, end = decode_at(text, start)
        return cls(opener, start, end, value)

    def is_all(self, text: str) -> bool:
        return self.value is not NOTHING and not text[: self.start].strip() and not text[self.end :].strip()

    def is_outermost(self, text: str) -> bool:
        return self.value is not NOTHING and self.end == text.rfind(_CLOSER[self.opener]) + 1


def _values(text: str, openers: str, *, is_inner: bool = False) -> Iterator[Any]:
    heads = [_Head.of(text, opener) for opener in openers]
    if not any(head.is_all(text) for head in heads):
        if not is_inner and (inner := _text_in_string(text)) is not None:
            yield from _values(inner, openers, is_inner=True)
            return
        reply = reply_in(text)
        if reply is not text:
            text = reply
            heads = [_Head.of(text, opener) for opener in openers]
    known: dict[int, int] = {}  # start and end of each yielded value
    for start, end, value in _specified(text, heads):
        if start not in known:
            known[start] = end
            yield value
    source = TokenSource(
        text, broken=[head.start for head in heads if head.value is NOTHING and head.end > 0]
    )
    for opener in openers:
        within = {start: end for start, end in known.items() if opener == "[" or text[start] != "["}
        for start, end, value in tolerant_values(source, _WIDE[opener], within):
            known[start] = end
            yield value


def _specified(text: str, heads: list[_Head]) -> Iterator[Found]:
    for head in heads:
        if head.is_all(text):
            yield head.start, head.end, head.value
            if head.opener == "{":
                return  # all other values are inside it
    objects: list[Found] = []
    for head in heads:
        for found in _blocks(text, head):
            if head.opener == "{":
                objects.append(found)
            yield found
    for head in heads:
        if head.is_outermost(text) and not any(start < head.start < end for start, end, _ in objects):
            objects.append((head.start, head.end, head.value))
            yield objects[-1]


def _blocks(text: str, head: _Head) -> Iterator[Found]:
    """Yield start, end and value of each strictly valid value between code fences.

    A block ends at the first fence that completes a value: a string may contain a fence.
    """
    fences = [match.span() for match in islice(_FENCE.finditer(text), _MAX_FENCES)]
    number = {start: index for index, (start, _) in enumerate(fences)}
    index, long_blocks = 0, 0
    while index + 1 < len(fences):
        start = _end_of(_TAG, text, fences[index][1])
        closing = index + 1
        if text.startswith(head.opener, start):
            value, end = head.value, head.end
            if start != head.start:
                stop = fences[closing][0]
                value, length = decode_at(text[start:stop], 0)
                end = start + length
                if value is NOTHING and end == stop and long_blocks < _MAX_LONG_BLOCKS:
                    long_blocks += 1
                    value, end = decode_at(text, start)
            if value is not NOTHING and (after := number.get(_end_of(_SPACE, text, end))) is not None:
                closing = after
                yield start, end, value
        index = closing + 1


def _end_of(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    return match.end() if match else start


def _text_in_string(text: str) -> str | None:
    """Return the content of a reply that is one JSON string."""
    body = text.strip()
    if _ESCAPED_JSON.match(body):
        return unescape(body)
    if body.startswith('"') and body.endswith('"') and "\\" in body:
        return unescape(body[1:-1])
    return None
