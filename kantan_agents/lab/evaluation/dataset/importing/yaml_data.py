"""YAML 1.2 as JSON data: ``no`` and ``12:30`` are strings."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import attrs
import yaml

from kantan_agents.lab.evaluation.dataset.json_data import DEEPEST, NotJSONDataError

_MOST_REPEATED: Final = 1_000_000
"""An alias repeats its target, so a short file can have more values than fit into memory."""
_TAG: Final = "tag:yaml.org,2002:"
_MERGE: Final = object()
"""The merge key."""
_TYPES: Final = (
    ("null", r"~|null|Null|NULL|", ("~", "n", "N", "")),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+0123456789.",
    ),
    ("merge", "<<", "<"),
)
_BY_FIRST: Final[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}
for _type, _pattern, _beginnings in _TYPES:
    for _beginning in _beginnings:
        _BY_FIRST.setdefault(_beginning, []).append((_type, re.compile(_pattern)))


def read_yaml(text: str) -> Any:
    """Return the data in YAML, which is never executed."""
    try:
        return _Reader().read(yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except NotJSONDataError:
        raise
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = "" if mark is None else f"line {mark.line + 1}: "
        raise NotJSONDataError(f"{line}it is not YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise NotJSONDataError(f"it is not YAML: {error}") from error


class _Read(NamedTuple):
    """A value; ``key`` is a string, ``_MERGE``, or None for a collection. ``size`` includes it."""

    value: Any
    key: Any = None
    size: int = 1
    depth: int = 0


@attrs.define
class _Open:
    start: Any
    value: Any
    merged: dict[str, Any] = attrs.Factory(dict)
    key: Any = None
    size: int = 1
    depth: int = 1


class _Reader:
    """Turns events into data: nodes would take several times as long."""

    def __init__(self) -> None:
        self._open: list[_Open] = []
        self._anchors: dict[str, _Read | None] = {}
        self._repeated = 0
        self._documents: list[Any] = []

    def read(self, events: Iterable[Any]) -> Any:
        """Return the value of the only document; None without one."""
        for event in events:
            if isinstance(event, yaml.ScalarEvent):
                self._add(event, event.anchor, _scalar(event))
            elif isinstance(event, yaml.CollectionStartEvent):
                self._begin(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                ended = self._open.pop()
                value = {**ended.merged, **ended.value} if ended.merged else ended.value
                read = _Read(value, None, ended.size, ended.depth)
                self._add(ended.start, ended.start.anchor, read)
            elif isinstance(event, yaml.AliasEvent):
                self._add(event, None, self._repeat(event))
            elif isinstance(event, yaml.DocumentStartEvent) and self._documents:
                raise NotJSONDataError(f"{_line(event)}it is not YAML: but found another document")
        return self._documents[0] if self._documents else None

    def _begin(self, event: Any) -> None:
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in (None, "!", f"{_TAG}{'map' if is_mapping else 'seq'}"):
            raise _not_data(event)
        self._open.append(_Open(event, {} if is_mapping else []))
        self._anchors[event.anchor] = None
        self._check_depth(0)

    def _repeat(self, event: Any) -> _Read:
        if event.anchor not in self._anchors:
            raise NotJSONDataError(f"{_line(event)}it is not YAML: no value is named {event.anchor!r}")
        # An alias inside its own target would have no end.
        read = self._anchors[event.anchor] or _Read(None, depth=DEEPEST)
        self._check_depth(read.depth)
        self._repeated += read.size
        if self._repeated > _MOST_REPEATED:
            raise NotJSONDataError(f"its aliases make more than {_MOST_REPEATED:,} values of it")
        return read

    def _check_depth(self, further: int) -> None:
        if len(self._open) + further > DEEPEST:
            raise NotJSONDataError(f"it is nested more than {DEEPEST} levels deep")

    def _add(self, event: Any, anchor: str | None, read: _Read) -> None:
        if anchor is not None:
            self._anchors[anchor] = read
        if not self._open:
            self._documents.append(read.value)
            return
        outer = self._open[-1]
        outer.size += read.size
        outer.depth = max(outer.depth, read.depth + 1)
        if isinstance(outer.value, list):
            outer.value.append(read.value)
        elif outer.key is None:
            _begin_pair(outer, event, read.key)
        else:
            _end_pair(outer, event, read.value)


def _begin_pair(outer: _Open, event: Any, key: Any) -> None:
    if key is None:
        raise NotJSONDataError(f"{_line(event)}a key is not a text")
    if key in outer.value:
        raise NotJSONDataError(f"{_line(event)}the key {key!r} is there twice")
    outer.key = key


def _end_pair(outer: _Open, event: Any, value: Any) -> None:
    key, outer.key = outer.key, None
    if key is not _MERGE:
        outer.value[key] = value
        return
    for one in value if isinstance(value, list) else [value]:
        if not isinstance(one, dict):
            raise NotJSONDataError(f"{_line(event)}<< must name a mapping")
        for name, inner in one.items():
            outer.merged.setdefault(name, inner)


def _scalar(event: Any) -> _Read:
    text, tag = event.value, event.tag
    if tag in (None, "!"):
        known = _BY_FIRST.get(text[:1], ()) if event.implicit[0] else ()
        kind = next((kind for kind, pattern in known if pattern.fullmatch(text)), "str")
    else:
        kind = tag.removeprefix(_TAG) if tag.startswith(_TAG) else ""
    if kind in ("str", "merge"):
        return _Read(text, text if kind == "str" else _MERGE)
    if kind == "null":
        return _Read(None, text)
    if kind == "bool":
        return _Read(text.lower() == "true", text)
    try:
        if kind == "int":
            return _Read(int(text, 0) if text.startswith(("0o", "0x")) else int(text), text)
        if kind == "float":
            return _Read(float(re.sub(r"\.(?=inf|nan)", "", text.lower())), text)
    except ValueError as error:
        raise NotJSONDataError(f"{_line(event)}{text[:40]!r} is not a number that can be read") from error
    raise _not_data(event)


def _not_data(event: Any) -> NotJSONDataError:
    return NotJSONDataError(f"{_line(event)}{event.tag!r} is not data that JSON has")


def _line(event: Any) -> str:
    return f"line {event.start_mark.line + 1}: "
