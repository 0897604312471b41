"""Reads reasoning and tool calls in the text of an answer.

Reasoning must be at the start and calls be all of the rest: elsewhere a model may quote them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from typing import Any, Final, NamedTuple

CALL: Final = "<tool_call>"
_CALL_END: Final = "</tool_call>"
_REASONING: Final = {"<think>": "</think>", "[THINK]": "[/THINK]"}
_OPENINGS: Final = (*_REASONING, CALL)
_MEMBERS: Final = {"name", "arguments", "parameters", "id", "type"}
_SPACE: Final = re.compile(r"\s*")
_MOST_SPACE: Final = 200
_DECODER: Final = json.JSONDecoder()

BEGINNINGS: Final = frozenset({"<", "[", " ", "\t", "\r", "\n"})
"""The first characters of possible reasoning or calls."""


class TextCall(NamedTuple):
    """A tool call in text, with JSON arguments."""

    name: str
    arguments: str


class Reading(NamedTuple):
    """The clear part of the text."""

    reasoning: str = ""
    text: str = ""
    calls: tuple[TextCall, ...] = ()


def begins_form(text: str) -> bool:
    """Return whether reasoning or a call starts the text."""
    return text[:1] in BEGINNINGS and text.lstrip().startswith(_OPENINGS)


class TextReader:
    """Reads the text of one answer in parts, however it is divided.

    ``callable_tools`` returns the tools that the text may call, and is only called if the text starts like a
    call. ``is_text``: only text follows.
    """

    def __init__(self, callable_tools: Callable[[], Collection[str]], *, reads_reasoning: bool) -> None:
        self.is_text = False
        self.has_reasoning = False
        self._callable_tools = callable_tools
        self._names: Collection[str] = ()
        self._openings = _OPENINGS if reads_reasoning else (CALL,)
        self._closing = ""  # of the open reasoning
        self._is_after_reasoning = False
        self._held = ""
        self._call: list[str] | None = None

    def feed(self, part: str) -> Reading:
        """Return the part that is clear by now."""
        if self._call is not None:
            self._call.append(part)
            return Reading()
        self._held += part
        if not (self._closing or self.is_text):
            self._begin()
        reasoning = ""
        if self._closing:
            reasoning, closing, after = self._held.partition(self._closing)
            if not closing:
                end = _without_beginning_of(self._closing, reasoning)
                self._held = reasoning[end:]
                return Reading(reasoning[:end])
            self._held, self._closing, self._openings = after, "", (CALL,)
            self._is_after_reasoning = True
            self._begin()
        if not self.is_text:
            return Reading(reasoning)
        text, self._held = self._held, ""
        return Reading(reasoning, text)

    def _begin(self) -> None:
        begins = self._held.lstrip()
        if self._is_after_reasoning:
            self._held = begins
        opening = next(filter(begins.startswith, self._openings), None)
        if len(self._held) - len(begins) > _MOST_SPACE:
            self.is_text = True
        elif opening is None:
            self.is_text = not any(one.startswith(begins) for one in self._openings)
        elif opening != CALL:
            self._closing, self._held = _REASONING[opening], begins[len(opening) :]
            self.has_reasoning = True
        elif names := self._callable_tools():
            self._names, self._call, self._held = names, [self._held], ""
        else:
            self.is_text = True

    def read_no_calls(self) -> None:
        """Treat apparent calls as text."""
        self._names, self._callable_tools = (), tuple

    def rest(self) -> Reading:
        """Return the held text."""
        if self._call is None:
            return Reading(self._held) if self._closing else Reading(text=self._held)
        text = "".join(self._call)
        calls = calls_in(text)
        if all(call.name in self._names for call in calls):
            return Reading(text="" if calls else text, calls=calls)
        return Reading(text=text)


def calls_in(text: str) -> tuple[TextCall, ...]:
    """Return the calls that ``text`` consists of.

    A call is ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>``; ``parameters`` and arguments as
    JSON text work too.
    """
    calls: list[TextCall] = []
    place = _after_space(text, 0)
    while place < len(text):
        start = _after_space(text, place + len(CALL))
        try:
            value, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            return ()
        end = _after_space(text, end)
        call = _call_of(value)
        if call is None or not (text.startswith(CALL, place) and text.startswith(_CALL_END, end)):
            return ()
        calls.append(call)
        place = _after_space(text, end + len(_CALL_END))
    return tuple(calls)


def _call_of(value: Any) -> TextCall | None:
    if not isinstance(value, dict) or not value.keys() <= _MEMBERS or not isinstance(value.get("name"), str):
        return None
    arguments = value.get("arguments", value.get("parameters", {}))
    if isinstance(arguments, dict):
        return TextCall(value["name"], json.dumps(arguments, ensure_ascii=False))
    return TextCall(value["name"], arguments) if isinstance(arguments, str) else None


def _after_space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return place if found is None else found.end()


def _without_beginning_of(mark: str, text: str) -> int:
    """Return the length of ``text`` without a mark's prefix at its end."""
    longest = min(len(mark) - 1, len(text))
    return len(text) - next((n for n in range(longest, 0, -1) if text.endswith(mark[:n])), 0)
