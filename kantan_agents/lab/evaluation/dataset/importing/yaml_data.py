"""``read_yaml``: JSON data in a YAML file, with the types of YAML 1.2: ``no`` and ``12:30`` are texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar, Final

import yaml

from kantan_agents.lab.evaluation.dataset.json_data import DEEPEST, NotJSONDataError

_MOST_VALUES: Final = 1_000_000
"""An alias can repeat what is behind it, so that a short file has more values than fit into memory."""
_TAG: Final = "tag:yaml.org,2002:"
_COLLECTIONS: Final = (f"{_TAG}map", f"{_TAG}seq", "!")
_TYPES: Final = (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        list("-+0123456789."),
    ),
    ("merge", "<<", ["<"]),
)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # chosen at run time
    """Composes nodes; what a file says is never executed."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}


for _name, _pattern, _first in _TYPES:
    _Loader.add_implicit_resolver(_TAG + _name, re.compile(rf"(?:{_pattern})\Z"), _first)


def read_yaml(text: str) -> Any:
    """Return the data in a YAML text.

    Raises:
        NotJSONDataError: It is not YAML, has more than one document, or has what JSON does not have.
    """
    try:
        _check_depth(text)
        node = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = "" if mark is None else f"line {mark.line + 1}: "
        raise NotJSONDataError(f"{line}it is not YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise NotJSONDataError(f"it is not YAML: {error}") from error
    return None if node is None else _Reader().value(node, DEEPEST)


def _check_depth(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise NotJSONDataError(f"it is nested more than {DEEPEST} levels deep")


class _Reader:
    def __init__(self) -> None:
        self._values = 0

    def value(self, node: Any, deeper: int) -> Any:
        self._values += 1
        if self._values > _MOST_VALUES:
            raise NotJSONDataError(f"its aliases make more than {_MOST_VALUES:,} values of it")
        if deeper == 0:  # an alias inside what it names has no end
            raise NotJSONDataError(f"it is nested more than {DEEPEST} levels deep")
        if not isinstance(node, yaml.ScalarNode) and node.tag not in _COLLECTIONS:
            raise _not_data(node)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, deeper)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(one, deeper - 1) for one in node.value]
        return _scalar(node)

    def _mapping(self, node: Any, deeper: int) -> dict[str, Any]:
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key, inner in node.value:
            if key.tag == f"{_TAG}merge":
                for one in self._merged(inner, deeper):
                    for name, value in one.items():
                        merged.setdefault(name, value)
                continue
            if not isinstance(key, yaml.ScalarNode):
                raise NotJSONDataError(f"{_line(key)}a key is not a text")
            if key.value in own:
                raise NotJSONDataError(f"{_line(key)}the key {key.value!r} is there twice")
            own[key.value] = self.value(inner, deeper - 1)
        return {**merged, **own}

    def _merged(self, node: Any, deeper: int) -> Iterator[dict[str, Any]]:
        for one in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            if not isinstance(one, yaml.MappingNode):
                raise NotJSONDataError(f"{_line(node)}<< must name a mapping")
            yield self.value(one, deeper - 1)


def _scalar(node: Any) -> Any:
    text = node.value
    if node.tag in (f"{_TAG}str", f"{_TAG}merge", "!"):
        return text
    if node.tag == f"{_TAG}null":
        return None
    if node.tag == f"{_TAG}bool":
        return text.lower() == "true"
    try:
        if node.tag == f"{_TAG}int":
            return int(text, 0) if text.startswith(("0o", "0x")) else int(text)
        if node.tag == f"{_TAG}float":
            return float(re.sub(r"\.(?=inf|nan)", "", text.lower()))
    except ValueError as error:
        raise NotJSONDataError(f"{_line(node)}{text[:40]!r} is not a number that can be read") from error
    raise _not_data(node)


def _not_data(node: Any) -> NotJSONDataError:
    return NotJSONDataError(f"{_line(node)}{node.tag!r} is not data that JSON has")


def _line(node: Any) -> str:
    return f"line {node.start_mark.line + 1}: "
