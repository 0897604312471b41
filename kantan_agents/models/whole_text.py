"""Repairs strings with half a surrogate pair, which no request can carry.

A model may split an emoji over two deltas; a tool's file name may not be UTF-8.
"""

from __future__ import annotations

import copy
import re
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from pydantic import BaseModel

from kantan_agents.support.storable_text import whole_text
from kantan_agents.tool_rules import MARKED_HALF

_HALF: Final = re.compile("[\ud800-\udfff]")
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
# Two halves, a lone half (group 1), or another JSON escape.
_ESCAPED: Final = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u([dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_MARKED: Final = re.compile(r"\\(?:u\{(d[89a-f][0-9a-f]{2})\}|.)", re.DOTALL)
_FIRST_HALVES: Final = ("\ud800", "\udbff")
_ARGUMENTS: Final = "arguments"
_MOST_PARTS: Final = 1_000_000  # more are a cycle, or are repaired unseen
_WITHOUT_TEXT: Final = frozenset({type(None), bool, int, float})
_seen_whole: Final[dict[int, weakref.ref[Any]]] = {}


def marked_arguments(text: str) -> str:
    r"""Return arguments with lone halves as ``\u{d83d}``, so that E10 rejects the call.

    Another value must not reach the tool, and the SDK cannot identify the call. ``sent_arguments`` shows
    U+FFFD to the model.
    """
    if not text.isascii():
        text = _mark_raw(text)
    if "\\u" not in text:
        return text
    return _ESCAPED.sub(lambda found: f"\\u{{{found[1].lower()}}}" if found[1] else found[0], text)


def sent_arguments(text: str) -> str:
    """Return earlier arguments with U+FFFD for marked halves."""
    if not text.isascii():
        text = whole_text(text)
    return (
        _MARKED.sub(lambda found: "\\ufffd" if found[1] else found[0], text) if MARKED_HALF in text else text
    )


def _mark_raw(text: str) -> str:
    joined = _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
    return _HALF.sub(lambda half: f"\\u{{{ord(half[0]):04x}}}", joined)


def whole_answer(value: Any) -> Any:
    """Repair parts of an answer, and mark arguments."""
    return _whole(value, marked_arguments)


def whole_request(value: Any) -> Any:
    """Repair parts of a request."""
    return _whole(value, sent_arguments)


def whole_settings(settings: Any) -> Any:
    """Repair model settings."""
    return _whole_part(settings) if have_texts(settings) else settings


def have_texts(settings: Any) -> bool:
    """Return whether settings have strings."""
    return bool(settings.extra_body or settings.extra_args or settings.extra_query or settings.metadata)


def are_known_whole(parts: Iterable[Any]) -> bool:
    """Return whether all parts are known to be whole."""
    return all(map(_seen_whole.__contains__, map(id, parts)))


def whole_parts(parts: Sequence[Any]) -> Sequence[Any]:
    """Repair tools, handoffs or schemas, once per object."""
    if are_known_whole(parts):
        return parts
    return [part if id(part) in _seen_whole else _looked_through(part) for part in parts]


def _looked_through(part: Any) -> Any:
    made = _whole_part(part)
    if made is part and hasattr(part, "__weakref__"):
        key = id(part)
        _seen_whole[key] = weakref.ref(part, lambda _: _seen_whole.pop(key, None))
    return made


def _whole_part(part: Any) -> Any:
    fields = getattr(part, "__dict__", {})
    made = whole_request(fields)
    if made is fields:
        return part
    copied = copy.copy(part)
    vars(copied).update(made)
    return copied


def _whole(value: Any, arguments: Callable[[str], str]) -> Any:
    try:
        return value if is_whole(value, arguments) else _made_whole(value, "", arguments)
    except RecursionError:  # the client cannot send it either
        return value


def is_whole(value: Any, arguments: Callable[[str], str]) -> bool:
    """Return whether all strings are whole; False for too many."""
    # No function calls: every request passes its whole conversation.
    waiting = [value]
    for one in waiting:  # it grows
        kind = type(one)
        if kind is str:
            if not one.isascii() and whole_text(one) is not one:
                return False
            continue
        if kind in _WITHOUT_TEXT:
            continue
        if kind is list or kind is tuple:
            waiting += one
        elif kind is dict or isinstance(one, BaseModel):
            fields = one if kind is dict else _fields_of(one)
            waiting += fields
            waiting += fields.values()
            text = fields.get(_ARGUMENTS)
            if type(text) is str and "\\u" in text and arguments(text) != text:
                return False
        else:
            continue
        if len(waiting) > _MOST_PARTS:
            return False
    return True


def _made_whole(value: Any, key: Any, arguments: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return arguments(value) if key == _ARGUMENTS else whole_text(value)
    if isinstance(value, (list, tuple)):
        return [_made_whole(item, key, arguments) for item in value]
    if isinstance(value, dict):
        return {
            whole_text(name) if isinstance(name, str) else name: _made_whole(item, name, arguments)
            for name, item in value.items()
        }
    if isinstance(value, BaseModel):
        fields = _fields_of(value)
        made = {name: _made_whole(item, name, arguments) for name, item in fields.items()}
        return value.model_copy(update=made)
    return value


def _fields_of(value: BaseModel) -> dict[str, Any]:
    return {**vars(value), **(value.__pydantic_extra__ or {})}  # avoids the call of `model_extra`


class WholeDeltas:
    """Joins surrogate halves of two deltas."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[Any, ...], tuple[Any, str]] = {}

    def feed(self, event: Any) -> Any:
        """Return the event with whole text, if any."""
        if event.delta.isascii() and not self._waiting:
            return event
        place = tuple(getattr(event, name, None) for name in ("type", "output_index", "content_index"))
        text = self._waiting.pop(place, (None, ""))[1] + event.delta
        if text and _FIRST_HALVES[0] <= text[-1] <= _FIRST_HALVES[1]:
            self._waiting[place] = event, text[-1]
            text = text[:-1]
        return _with_delta(event, text) if text else None

    def rest(self) -> Iterator[Any]:
        """Yield an event for each remaining half."""
        while self._waiting:
            _, (event, half) = self._waiting.popitem()
            yield _with_delta(event, half)


def _with_delta(event: Any, text: str) -> Any:
    text = _mark_raw(text) if _ARGUMENTS in event.type else whole_text(text)
    return event if text == event.delta else event.model_copy(update={"delta": text})
