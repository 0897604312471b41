"""JSON types and defaults that a tool's schema declares."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final
from urllib.parse import unquote

from kantan_agents.tool_rules.keywords import TYPES, compiled

Step = str | int
"""A key of an object, a position in an array, or ``"[]"`` for the remaining items."""

Path = tuple[Step, ...]
Types = frozenset[str]

ITEMS: Final = "[]"
ANY: Final[Types] = frozenset(TYPES)
NULL: Final[Types] = frozenset({"null"})
NUMBERS: Final[Types] = frozenset({"integer", "number"})
_NEVER: Final[Types] = frozenset()
_CYCLE: Final[Types] = frozenset({"a reference to itself"})


class Declarations:
    """A tool's declarations about the values at a path.

    All keywords that can describe a value count. If one cannot be evaluated without the value, every type
    that it may permit counts.
    """

    def __init__(self, schema: Any) -> None:
        self._root = schema
        self._known: dict[tuple[int, Path], Types | None] = {}
        self._open: set[tuple[int, Path]] = set()

    def types(self, path: Path) -> Types | None:
        """Return the JSON types that the schema permits at a path; None if it declares none."""
        try:
            found = self._types(self._root, path)
        except RecursionError:
            found = ANY  # something is declared, but nested too deeply to be read
        finally:
            self._open.clear()
        return None if found == _CYCLE else found

    def default(self, path: Path) -> Any:
        """Return the declared default at a path of keys."""
        try:
            places = self._schemas(self._root, path, set())
            return next((one["default"] for one in places if one.get("default") is not None), None)
        except RecursionError:
            return None

    @cached_property
    def positions(self) -> int:
        """Count the array positions with dedicated schemas."""
        most = 0
        waiting = [self._root]
        seen: set[int] = set()
        while waiting:
            one = waiting.pop()
            if id(one) in seen:
                continue
            seen.add(id(one))
            if isinstance(one, Mapping):
                most = max(most, *(len(listed(one.get(key))) for key in ("prefixItems", "items")))
                waiting += one.values()
            elif isinstance(one, list):
                waiting += one
        return most

    def _types(self, schema: Any, path: Path) -> Types | None:
        if schema is False:
            return _NEVER
        if not isinstance(schema, Mapping):
            return None
        key = (id(schema), path)
        if key in self._known:
            return self._known[key]
        if key in self._open:
            return _CYCLE
        self._open.add(key)
        found = self._known[key] = _meet(self._parts(schema, path))
        self._open.discard(key)
        return found

    def _parts(self, schema: Mapping[str, Any], path: Path) -> Iterator[Types | None]:
        yield self._below(schema, path) if path else own_types(schema)
        reference = schema.get("$ref")
        if isinstance(reference, str):
            target, is_known = resolved(self._root, reference)
            yield self._types(target, path) if is_known else ANY
        if "$dynamicRef" in schema or "$recursiveRef" in schema:
            yield ANY
        for one in listed(schema.get("allOf")):
            yield self._types(one, path)
        for keyword in ("anyOf", "oneOf"):
            yield self._any_of(listed(schema.get(keyword)), path)
        if "if" in schema:
            yield self._any_of([schema.get("then"), schema.get("else")], path)
        for keyword in ("dependentSchemas", "dependencies"):
            for one in _values(schema.get(keyword)):
                yield self._types(one, path)

    def _any_of(self, schemas: list[Any], path: Path) -> Types | None:
        return _join([self._types(one, path) for one in schemas])

    def _below(self, schema: Mapping[str, Any], path: Path) -> Types | None:
        step, rest = path[0], path[1:]
        own = own_types(schema)
        if own is not None and ("object" if is_key(step) else "array") not in own:
            return _NEVER
        inner = list(inner_schemas(schema, step))
        if not inner:
            other = schema.get("unevaluatedProperties" if is_key(step) else "unevaluatedItems")
            return self._types(other, rest) if isinstance(other, Mapping) else None
        return _meet(self._types(one, rest) for one in inner)

    def _schemas(self, schema: Any, path: Path, seen: set[tuple[int, Path]]) -> Iterator[Mapping[str, Any]]:
        if not isinstance(schema, Mapping) or (id(schema), path) in seen:
            return
        seen.add((id(schema), path))
        if not path:
            yield schema
        else:
            for one in inner_schemas(schema, path[0]):
                yield from self._schemas(one, path[1:], seen)
        reference = schema.get("$ref")
        same = [resolved(self._root, reference)[0]] if isinstance(reference, str) else []
        for keyword in ("allOf", "anyOf", "oneOf"):
            same += listed(schema.get(keyword))
        for one in same:
            yield from self._schemas(one, path, seen)


def is_key(step: Step) -> bool:
    """Whether a step leads into an object."""
    return isinstance(step, str) and step != ITEMS


def inner_schemas(schema: Mapping[str, Any], step: Step) -> Iterator[Any]:
    """Yield schemas of a property or item."""
    if isinstance(step, str) and step != ITEMS:
        yield from _of_property(schema, step)
        return
    first = listed(schema.get("prefixItems"))
    others = "items" if first else "additionalItems"
    if not first:
        first = listed(schema.get("items"))  # the form of older drafts
        others = "additionalItems" if first else "items"
    if isinstance(step, int) and step < len(first):
        yield first[step]
    elif others in schema:
        yield schema[others]


def _of_property(schema: Mapping[str, Any], name: str) -> Iterator[Any]:
    properties, patterns = schema.get("properties"), schema.get("patternProperties")
    found = [properties[name]] if isinstance(properties, Mapping) and name in properties else []
    if isinstance(patterns, Mapping):
        found += [one for pattern, one in patterns.items() if _may_match(pattern, name)]
    if found:
        yield from found
    elif "additionalProperties" in schema:
        yield schema["additionalProperties"]


def _may_match(pattern: Any, name: str) -> bool:
    try:
        return bool(compiled({"pattern": pattern}).is_valid(name))
    except (ValueError, TypeError):
        return True  # unknown to the linear-time engine


def own_types(schema: Mapping[str, Any]) -> Types | None:
    """Return the types that a schema itself permits."""
    return _meet((_named(schema), _of_values(schema), _excluded(schema.get("not"))))


def _named(schema: Mapping[str, Any]) -> Types | None:
    kinds = schema.get("type")
    if not isinstance(kinds, (str, list)) or not kinds:
        return None
    names = [kinds] if isinstance(kinds, str) else kinds
    if any(not isinstance(name, str) or name not in ANY for name in names):
        return ANY  # not JSON Schema: it may mean any type
    found = frozenset(names) | ({"null"} if schema.get("nullable") is True else frozenset())
    return found | NUMBERS if "number" in found else found


def _of_values(schema: Mapping[str, Any]) -> Types | None:
    values = [schema["const"]] if "const" in schema else listed(schema.get("enum"))
    return frozenset(map(type_of, values)) if values else None


def _excluded(schema: Any) -> Types | None:
    if not isinstance(schema, Mapping):
        return None
    kinds = _named(schema) if schema.keys() == {"type"} else None
    return ANY - kinds if kinds is not None and kinds != ANY else ANY


def _meet(parts: Iterable[Types | None]) -> Types | None:
    """Return the types that all parts permit; None if none declares any."""
    found: Types | None = None
    has_cycle = False
    for part in parts:
        if part == _CYCLE:
            has_cycle = True
        elif part is not None:
            found = part if found is None else found & part
    return _CYCLE if found is None and has_cycle else found


def _join(parts: list[Types | None]) -> Types | None:
    """Return the types that some part permits; None if no part declares any."""
    known = [part for part in parts if part != _CYCLE]
    if len(known) < len(parts) and not known:
        return _CYCLE
    if all(part is None for part in known):
        return None
    return frozenset().union(*(ANY if part is None else part for part in known))


def listed(value: Any) -> list[Any]:
    """Return a list unchanged, else an empty one."""
    return value if isinstance(value, list) else []


def _values(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, Mapping) else []


def resolved(root: Any, reference: str) -> tuple[Any, bool]:
    """Return the target of a reference, and whether it was found."""
    place, *steps = unquote(reference).split("/")
    if place != "#":
        return None, False
    for step in steps:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(root, Mapping) and name in root:
            root = root[name]
        elif isinstance(root, list) and re.fullmatch("[0-9]{1,6}", name) and int(name) < len(root):
            root = root[int(name)]
        else:
            return None, False
    return root, True


def type_of(value: Any) -> str:
    """Return the JSON type; an integral float is an integer."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer"
    names: dict[type, str] = {str: "string", float: "number", dict: "object", list: "array"}
    return next((name for kind, name in names.items() if isinstance(value, kind)), "null")


Check = Callable[[Path, "str | None"], "Types | None"]
"""Takes a path, and the type of a container that must be there; returns the permitted types, None for any."""


def first_of_other_type(
    permitted: Check, positions: int, steps: tuple[str, ...], value: Any, path: Path = ()
) -> Types | None:
    """Return the permitted types at the first step to a parameter whose value has another type.

    ``positions`` counts array positions with dedicated types.
    """
    container = None if not steps else "array" if steps[0] == ITEMS else "object"
    types = permitted(path, container) if path else None
    if types is not None and type_of(value) not in types:
        return types
    if not steps:
        return None
    inner: Iterator[tuple[Step, Any]] = iter(())
    if steps[0] == ITEMS:
        if isinstance(value, list):
            inner = ((place if place < positions else ITEMS, item) for place, item in enumerate(value))
    elif isinstance(value, dict) and steps[0] in value:
        inner = iter([(steps[0], value[steps[0]])])
    for step, item in inner:
        found = first_of_other_type(permitted, positions, steps[1:], item, (*path, step))
        if found is not None:
            return found
    return None
