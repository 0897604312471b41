"""Compiled parameter rules (spec 8.3)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import attrs
import jsonschema_rs

from kantan_agents.errors import (
    PARAMETER_ERRORS,
    ToolInputError,
    ToolParameterError,
    ToolParameterTypeError,
)
from kantan_agents.tool_rules.declared import Declarations, Path, Types, first_of_other_type
from kantan_agents.tool_rules.keywords import KEYWORDS, TYPES, characters_at_once, compiled, is_json
from kantan_agents.tool_rules.received_values import checked_types, first_unchecked

_LONGEST_PATH = 32
_INDEX = re.compile(r"\[\d*\]")
_VALUES_AT_ONCE = 500
_CACHED_SCHEMAS = 64


def parse_path(path: str) -> tuple[str, ...]:
    """Return the steps of a dotted path, or raise ValueError; ``"[]"`` is a step to every item."""
    if not is_json(path):
        raise ValueError("a step of the path is not valid Unicode")
    steps: list[str] = []
    for part in path.split("."):
        name = part
        depth = 0
        while name.endswith("[]"):
            name, depth = name[:-2], depth + 1
        if not name:
            raise ValueError("a step of the path is empty")
        if _INDEX.search(name):
            raise ValueError(f"{part!r}: only [] at the end of a step means items, and means all of them")
        steps += [name, *["[]"] * depth]
    if len(steps) > _LONGEST_PATH:
        raise ValueError(f"a path has at most {_LONGEST_PATH} steps")
    return tuple(steps)


@attrs.frozen
class ParameterRule:
    """The rule of one parameter."""

    tool: str
    path: str
    keywords: Mapping[str, Any]


@attrs.frozen
class Breach:
    """A parameter rule that a call breaks.

    ``entry`` lacks the keyword if the tool does not declare the type.
    """

    entry: str
    error: ToolParameterError


@attrs.frozen(slots=False, eq=False)
class ParameterChecks:
    """All parameter rules of one tool, compiled once."""

    rules: tuple[ParameterRule, ...]

    def breach(self, tool_name: str, arguments: Mapping[str, Any]) -> Breach | None:
        """Return the first broken rule, in the order of rules and keywords.

        Raises:
            ToolInputError: E10, invalid Unicode or too deep nesting.
        """
        try:
            if self._validator.is_valid(arguments):
                return None
            # One rule at a time: a list of all errors can be as long as an array in the arguments.
            rule, keyword = next(
                (rule, keyword)
                for rule, keyword, validator in self._validators
                if not validator.is_valid(arguments)
            )
        except (ValueError, RecursionError) as error:
            raise ToolInputError(tool_name=tool_name, reason=str(error)) from error
        return self._breach(tool_name, rule, keyword)

    def undeclared(
        self, tool_name: str, schema: Mapping[str, Any], arguments: Mapping[str, Any]
    ) -> Breach | None:
        """Return the first argument under a rule without the type that its tool declares.

        Some tools also accept the string ``"500"`` as a number, or ``'{"limit": 500}'`` as an object.
        ``maximum`` ignores strings, so the types are checked at every step of the path. If the tool declares
        none, the types that the rule can check are permitted.
        """
        if not schema:
            return None
        declared = self._declared_by(schema)
        for steps, rule in self._rule_paths:
            types = first_of_other_type(
                lambda path, container, rule=rule: declared.permitted(path, container, rule),  # type: ignore[misc]
                declared.declarations.positions,
                steps,
                arguments,
            )
            if types is not None:
                return self._type_breach(tool_name, rule, types)
        return None

    def unchecked(
        self,
        tool_name: str,
        schema: Mapping[str, Any],
        received: Mapping[str, Any],
        written: Mapping[str, Any],
    ) -> Breach | None:
        """Return the first received value that its rule cannot check; E10 if it cannot be read.

        A default that the tool declares may have any type.
        """
        for steps, rule in self._rule_paths:
            try:
                types = first_unchecked(steps, rule.keywords, received, written)
            except ValueError as error:
                raise ToolInputError(tool_name=tool_name, reason=f"{rule.path}: {error}") from error
            if types is not None and not self._is_default(schema, steps, received):
                return self._type_breach(tool_name, rule, types)
        return None

    def _is_default(self, schema: Mapping[str, Any], steps: Path, received: Mapping[str, Any]) -> bool:
        default = next((one for path, one in self._declared_by(schema).defaults if path == steps), None)
        return default is not None and list(_values_at(steps, received)) == [default]

    def with_defaults(self, schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return ``arguments`` with the tool's defaults, which rules apply to as well.

        A default of null means no value.
        """
        for path, default in self._declared_by(schema).defaults:
            arguments = _completed(arguments, path, default)
        return arguments

    def is_quick(self, arguments: Mapping[str, Any]) -> bool:
        """Return whether a check blocks the event loop for a few milliseconds at most."""
        spent, values = 0.0, 0
        for steps, at_once in self._costs:
            for value in _values_at(steps, arguments):
                values += 1
                if values > _VALUES_AT_ONCE:
                    return False
                if at_once is not None and isinstance(value, str):
                    spent += len(value) / at_once
        return spent <= 1

    def _declared_by(self, schema: Mapping[str, Any]) -> _Declared:
        known = self._declared.get(id(schema))
        if known is not None and known[0] is schema:
            return known[1]
        found = _Declared(schema, self._rule_paths)
        if len(self._declared) >= _CACHED_SCHEMAS:  # schemas of MCP servers are new each turn
            self._declared.clear()
        self._declared[id(schema)] = (schema, found)
        return found

    @staticmethod
    def _type_breach(tool_name: str, rule: ParameterRule, types: Types) -> Breach:
        limit = tuple(name for name in TYPES if name in types)
        error = ToolParameterTypeError(tool_name=tool_name, param_name=rule.path, limit=limit)
        return Breach(f"{rule.tool}.{rule.path}", error)

    @staticmethod
    def _breach(tool_name: str, rule: ParameterRule, keyword: str) -> Breach:
        kind, limit = PARAMETER_ERRORS[keyword], rule.keywords[keyword]
        error = kind(tool_name=tool_name, param_name=rule.path, limit=limit)
        return Breach(f"{rule.tool}.{rule.path}.{keyword}", error)

    @cached_property
    def _rule_paths(self) -> list[tuple[tuple[str, ...], ParameterRule]]:
        # A name with dots is a path or one parameter's name: the rule applies to both.
        return [
            (steps, rule)
            for rule in self.rules
            for steps in dict.fromkeys((parse_path(rule.path), (rule.path,)))
        ]

    @cached_property
    def _validator(self) -> jsonschema_rs.Draft202012Validator:
        return compiled({"allOf": [_schema_at(steps, rule.keywords) for steps, rule in self._rule_paths]})

    @cached_property
    def _validators(self) -> list[tuple[ParameterRule, str, jsonschema_rs.Draft202012Validator]]:
        return [
            (rule, keyword, compiled(_schema_at(steps, {keyword: rule.keywords[keyword]})))
            for steps, rule in self._rule_paths
            for keyword in KEYWORDS
            if keyword in rule.keywords
        ]

    @cached_property
    def _costs(self) -> list[tuple[tuple[str, ...], float | None]]:
        """The path of each rule, and the number of characters that use up the time budget."""
        return [
            (steps, characters_at_once(rule.keywords["pattern"]) if "pattern" in rule.keywords else None)
            for steps, rule in self._rule_paths
        ]

    @cached_property
    def _declared(self) -> dict[int, tuple[Any, _Declared]]:
        return {}


class _Declared:
    """A tool's declarations for the parameters under some rules, with defaults of objects around them."""

    def __init__(self, schema: Mapping[str, Any], paths: list[tuple[tuple[str, ...], ParameterRule]]) -> None:
        self.declarations = Declarations(schema)
        keys = dict.fromkeys(steps[:end] for steps, _ in paths for end in range(1, _keys_of(steps) + 1))
        found = [(path, self.declarations.default(path)) for path in keys]
        self.defaults = [(path, default) for path, default in found if default is not None]
        self._permitted: dict[tuple[Path, str | None, int], Types | None] = {}

    def permitted(self, path: Path, container: str | None, rule: ParameterRule) -> Types | None:
        """Return the types that both tool and rule permit; None for any.

        ``container`` is ``"object"`` or ``"array"`` if the parameter is inside the value at ``path``.
        """
        key = (path, container, id(rule))
        if key not in self._permitted:
            self._permitted[key] = self._both(path, container, rule.keywords)
        return self._permitted[key]

    def _both(self, path: Path, container: str | None, keywords: Mapping[str, Any]) -> Types | None:
        if container is None and "type" in keywords:
            return None
        # In any other container, the rule would not find the parameter.
        checked = checked_types(keywords) if container is None else frozenset({container, "null"})
        declared = self.declarations.types(path)
        if checked is None or declared is None:
            return declared if checked is None else checked
        return declared & checked


def _keys_of(steps: tuple[str, ...]) -> int:
    return steps.index("[]") if "[]" in steps else len(steps)


def _completed(arguments: Mapping[str, Any], path: tuple[str, ...], default: Any) -> Mapping[str, Any]:
    """Return ``arguments`` with a default if only the path's last step is missing."""
    key, rest = path[0], path[1:]
    if not rest:
        return arguments if key in arguments else {**arguments, key: default}
    inner = arguments.get(key)
    if not isinstance(inner, dict):
        return arguments
    completed = _completed(inner, rest, default)
    return arguments if completed is inner else {**arguments, key: completed}


def _schema_at(steps: tuple[str, ...], rule: Mapping[str, Any]) -> dict[str, Any]:
    schema = {keyword: list(value) if isinstance(value, tuple) else value for keyword, value in rule.items()}
    for step in reversed(steps):
        schema = {"items": schema} if step == "[]" else {"properties": {step: schema}}
    return schema


def _values_at(steps: Path, value: Any) -> Iterator[Any]:
    if not steps:
        yield value
    elif steps[0] == "[]":
        if isinstance(value, list):
            for item in value:
                yield from _values_at(steps[1:], item)
    elif isinstance(value, dict) and steps[0] in value:
        yield from _values_at(steps[1:], value[steps[0]])
