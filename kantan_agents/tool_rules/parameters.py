"""Parameter rules: seven keywords of JSON Schema 2020-12, with their exact meaning (spec 8.3).

Checked by ``jsonschema-rs`` with its linear-time regular expressions, which no nested repetition can
stall. Linear still means pattern size times text length; ``ParameterChecks.is_quick`` says whether a
call may be checked on the event loop.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cached_property, lru_cache
from typing import Any

import attrs
import jsonschema_rs

from kantan_agents.errors import (
    PARAMETER_ERRORS,
    ToolInputError,
    ToolParameterError,
    ToolParameterTypeError,
)
from kantan_agents.tool_rules.wording import path_step, shown

KEYWORDS = tuple(PARAMETER_ERRORS)
TYPES = ("string", "integer", "number", "boolean", "object", "array", "null")

# What a pattern may cost: its compiled size, found by compiling it within ever larger limits. Measured:
# 0.4 us a character and 0.14 ns more for each byte of the limit, in the worst case. A short pattern has
# too few states for that case, unless it counts repetitions or asks for the edges of words.
_PATTERN_SIZES = tuple(1 << power for power in range(12, 19))
_LOOP_BUDGET_US = 2500
_TRIVIAL_PATTERN = 12
_NEVER_TRIVIAL = re.compile(r"\{|\\[bB<>]")
_LONGEST_PATH = 32
_INDEX = re.compile(r"\[\d*\]")


def parse_rule(path: str, rule: Any, problems: list[str]) -> Mapping[str, Any]:
    """Return a rule's keywords; what is wrong with them is added to ``problems``, each with its path."""
    if not isinstance(rule, Mapping):
        problems.append(f"{path}: must be a dict of keywords, not {shown(rule)}")
        return {}
    for keyword, value in rule.items():
        at = f"{path}.{path_step(keyword)}"
        if keyword not in KEYWORDS:
            problems.append(f"{at}: unknown keyword, {_suggestion(keyword)}")
        else:
            problems.extend(f"{at}: {problem}" for problem in _wrong_value(keyword, value))
    return rule


def _suggestion(keyword: Any) -> str:
    near = [known for known in KEYWORDS if known.lower() == path_step(keyword).lower()]
    near = near or get_close_matches(path_step(keyword), KEYWORDS, n=1)
    return f"did you mean {near[0]}?" if near else f"there are {', '.join(KEYWORDS)}"


def _wrong_value(keyword: str, value: Any) -> Iterator[str]:
    if keyword == "type":
        return _wrong_type(value)
    if keyword == "enum":
        return _wrong_enum(value)
    if keyword == "pattern":
        return _wrong_pattern(value)
    return _wrong_length(value) if keyword in ("minLength", "maxLength") else _wrong_number(value)


def _wrong_type(value: Any) -> Iterator[str]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)) or not names:
        yield f"must be a type or a list of types, not {shown(value)}"
        return
    for name in names:
        if not isinstance(name, str) or name not in TYPES:
            near = get_close_matches(path_step(name), TYPES, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(TYPES)}"
            yield f"{shown(name)} is not a type, {hint}"
    if len({path_step(name) for name in names}) != len(names):
        yield f"names a type twice: {shown(value)}"


def _wrong_enum(value: Any) -> Iterator[str]:
    if not isinstance(value, (list, tuple)) or not value:
        yield f"must be a list of at least one value, not {shown(value)}"
    elif not _is_json(list(value)):
        yield "must hold JSON values only"


def _wrong_length(value: Any) -> Iterator[str]:
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, bool) or not whole or value < 0 or not _is_json(value):
        yield f"must be a whole number, 0 or more, not {shown(value)}"


def _wrong_number(value: Any) -> Iterator[str]:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not _is_json(value):
        yield f"must be a finite number, not {shown(value)}"


def _wrong_pattern(value: Any) -> Iterator[str]:
    if not isinstance(value, str):
        yield f"must be a regular expression as a str, not {shown(value)}"
    elif characters_at_once(value) is None:
        yield (
            f"{shown(value)} cannot be compiled by the linear-time engine (no look-around, no back "
            "references, no large counted repetitions: bound a length with maxLength)"
        )


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
        jsonschema_rs.is_valid({"const": value}, value)
    except (ValueError, TypeError, RecursionError):
        return False
    return True


@lru_cache(maxsize=1024)
def characters_at_once(pattern: str) -> float | None:
    """Return how long a text ``pattern`` may be matched with on the event loop; None if it is no pattern."""
    for size in _PATTERN_SIZES:
        try:
            _validator({"pattern": pattern}, size)
        except ValueError:
            continue
        if len(pattern) <= _TRIVIAL_PATTERN and not _NEVER_TRIVIAL.search(pattern):
            return float("inf")
        return _LOOP_BUDGET_US / (0.4 + 0.00014 * size)
    return None


def _validator(schema: dict[str, Any], size: int = _PATTERN_SIZES[-1]) -> jsonschema_rs.Draft202012Validator:
    options = jsonschema_rs.RegexOptions(size_limit=size)
    return jsonschema_rs.Draft202012Validator(schema, pattern_options=options)


def parse_path(path: str) -> tuple[str, ...]:
    """Return the steps of a dotted path; ``"[]"`` is a step to every item of an array.

    Raises:
        ValueError: A step is empty or no text, ``[]`` stands elsewhere than at its end, or there are
            too many steps.
    """
    if not _is_json(path):
        raise ValueError("a step of the path is no Unicode")
    steps: list[str] = []
    for part in path.split("."):
        name = part
        depth = 0
        while name.endswith("[]"):
            name, depth = name[:-2], depth + 1
        if not name:
            raise ValueError("a step of the path is empty")
        if _INDEX.search(name):
            raise ValueError(f"{part!r}: only [] at the end of a step stands for items, and for all of them")
        steps += [name, *["[]"] * depth]
    if len(steps) > _LONGEST_PATH:
        raise ValueError(f"a path has at most {_LONGEST_PATH} steps")
    return tuple(steps)


@attrs.frozen
class ParameterRule:
    """The rule of one parameter.

    Attributes:
        tool: The tool's name as the rule set has it, which may be a glob pattern.
        path: The parameter, a dotted path.
        keywords: Keyword to value.
    """

    tool: str
    path: str
    keywords: Mapping[str, Any]


@attrs.frozen
class Breach:
    """A parameter rule that a call breaks.

    Attributes:
        entry: The deciding rule: ``tool.parameter.keyword``, or ``tool.parameter`` where it is only because
            of that rule that the type the tool declares counts.
        error: What the call is refused with.
    """

    entry: str
    error: ToolParameterError


@attrs.frozen(slots=False, eq=False)
class ParameterChecks:
    """All parameter rules of one tool, compiled once; all of them must hold."""

    rules: tuple[ParameterRule, ...]

    def breach(self, tool_name: str, arguments: Mapping[str, Any]) -> Breach | None:
        """Return the first rule that ``arguments`` break, rules and keywords in order; None if none.

        Raises:
            ToolInputError: E10, a text in them is no Unicode, or they are nested too deeply.
        """
        try:
            if self._validator.is_valid(arguments):
                return None
            # One by one, in order: a list of all errors is as long as the model makes an array.
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
        """Return the first argument under a rule that has not the type its tool declares; None if none.

        A tool that declares a number takes the text ``"500"`` for one, and some take the text
        ``'{"limit": 500}'`` for an object. ``maximum`` says nothing about texts, so without this check,
        which is made at every step of the path, it would not hold.
        """
        for steps, rule in self._places:
            for end in range(1, len(steps) + ("type" not in rule.keywords)):
                values = list(_values_at(steps[:end], arguments))
                types = _declared_types(schema, steps[:end]) if values else ()
                if types and not all(_has_type(value, types) for value in values):
                    error = ToolParameterTypeError(tool_name=tool_name, param_name=rule.path, limit=types)
                    return Breach(f"{rule.tool}.{rule.path}", error)
        return None

    def is_quick(self, arguments: Mapping[str, Any]) -> bool:
        """Return whether ``breach`` keeps an event loop for a few milliseconds at the very most."""
        spent = sum(
            len(text) / longest
            for steps, longest in self._bounded_patterns
            for text in _values_at(steps, arguments)
            if isinstance(text, str)
        )
        return spent <= 1

    @staticmethod
    def _breach(tool_name: str, rule: ParameterRule, keyword: str) -> Breach:
        kind, limit = PARAMETER_ERRORS[keyword], rule.keywords[keyword]
        error = kind(tool_name=tool_name, param_name=rule.path, limit=limit)
        return Breach(f"{rule.tool}.{rule.path}.{keyword}", error)

    @cached_property
    def _places(self) -> list[tuple[tuple[str, ...], ParameterRule]]:
        # A name with dots in it is also the name of one parameter: the rule holds for both.
        return [
            (steps, rule)
            for rule in self.rules
            for steps in dict.fromkeys((parse_path(rule.path), (rule.path,)))
        ]

    @cached_property
    def _validator(self) -> jsonschema_rs.Draft202012Validator:
        return _validator({"allOf": [_schema_at(steps, rule.keywords) for steps, rule in self._places]})

    @cached_property
    def _validators(self) -> list[tuple[ParameterRule, str, jsonschema_rs.Draft202012Validator]]:
        return [
            (rule, keyword, _validator(_schema_at(steps, {keyword: rule.keywords[keyword]})))
            for steps, rule in self._places
            for keyword in KEYWORDS
            if keyword in rule.keywords
        ]

    @cached_property
    def _bounded_patterns(self) -> list[tuple[tuple[str, ...], float]]:
        patterns = (
            (steps, rule.keywords["pattern"]) for steps, rule in self._places if "pattern" in rule.keywords
        )
        bounds = ((steps, characters_at_once(pattern) or 1) for steps, pattern in patterns)
        return [(steps, longest) for steps, longest in bounds if longest != float("inf")]


def _schema_at(steps: tuple[str, ...], rule: Mapping[str, Any]) -> dict[str, Any]:
    schema = {keyword: list(value) if isinstance(value, tuple) else value for keyword, value in rule.items()}
    for step in reversed(steps):
        schema = {"items": schema} if step == "[]" else {"properties": {step: schema}}
    return schema


def _values_at(steps: tuple[str, ...], value: Any) -> Iterator[Any]:
    if not steps:
        yield value
    elif steps[0] == "[]":
        if isinstance(value, list):
            for item in value:
                yield from _values_at(steps[1:], item)
    elif isinstance(value, Mapping) and steps[0] in value:
        yield from _values_at(steps[1:], value[steps[0]])


def _declared_types(schema: Any, steps: tuple[str, ...]) -> tuple[str, ...]:
    """Return the JSON types a tool's own schema has for a parameter; nothing where it leaves that open."""
    places = _alternatives(schema, [schema])
    for one in steps:
        places = _alternatives(schema, [inner for place in places for inner in _inside(place, one)])
    types: list[str] = []
    for place in places:
        found = place.get("type") if isinstance(place, Mapping) else None
        if not isinstance(found, (str, list)) or not found:
            return ()
        types += [found] if isinstance(found, str) else found
    return tuple(dict.fromkeys(map(str, types)))


def _inside(schema: Any, one: str) -> Iterator[Any]:
    """Yield what a schema says about its items or about one property, None where it leaves that open."""
    if not isinstance(schema, Mapping):
        yield None
        return
    types, properties = schema.get("type"), schema.get("properties")
    if isinstance(types, (str, list)) and ("array" if one == "[]" else "object") not in types:
        return
    if one == "[]":
        yield schema.get("items")
    elif isinstance(properties, Mapping) and one in properties:
        yield properties[one]
    else:
        yield schema.get("additionalProperties")


def _alternatives(root: Any, schemas: Iterable[Any]) -> list[Any]:
    """Return the schemas of which a value may have any, references followed, each of them once."""
    found: list[Any] = []
    waiting = list(schemas)
    seen: set[int] = set()
    for schema in waiting:  # grows as it goes
        if not isinstance(schema, Mapping):
            found.append(None)
            continue
        if id(schema) in seen:
            continue
        seen.add(id(schema))
        reference = schema.get("$ref")
        options = schema.get("anyOf") or schema.get("oneOf") or _only(schema.get("allOf"))
        if isinstance(reference, str):
            waiting.append(_pointed_at(root, reference))
        elif isinstance(options, list) and "type" not in schema and "properties" not in schema:
            waiting += options
        else:
            found.append(schema)
    return found


def _only(schemas: Any) -> list[Any] | None:
    return schemas if isinstance(schemas, list) and len(schemas) == 1 else None


def _pointed_at(root: Any, reference: str) -> Any:
    place, *steps = reference.split("/")
    if place != "#":
        return None
    for one in steps:
        root = root.get(one.replace("~1", "/").replace("~0", "~")) if isinstance(root, Mapping) else None
    return root


def _has_type(value: Any, types: tuple[str, ...]) -> bool:
    if isinstance(value, bool):
        return "boolean" in types
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer" in types or "number" in types
    names = {str: "string", float: "number", dict: "object", list: "array", type(None): "null"}
    return names.get(type(value)) in types
