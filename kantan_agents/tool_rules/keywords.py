"""The keywords of parameter rules (spec 8.3).

``jsonschema-rs`` matches patterns in linear time, so nested repetitions cannot stall it. The time still grows
with pattern size times string length.
"""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

import jsonschema_rs

from kantan_agents.errors import PARAMETER_ERRORS

KEYWORDS = tuple(PARAMETER_ERRORS)
TYPES = ("string", "integer", "number", "boolean", "object", "array", "null")

# The cost of a pattern depends on its compiled size, found by compiling it with ever larger limits. Measured
# worst case: 0.4 us per character plus 0.14 ns for each byte of the limit. Short patterns reach it only with
# counted repetitions, word boundaries or multi-byte characters.
_PATTERN_SIZES = (1 << 13, 1 << 15, 1 << 18)
_LOOP_BUDGET_US = 2500
_TRIVIAL_PATTERN = 12
_NEVER_TRIVIAL = re.compile(r"\{|\\[bB<>]|[^\x00-\x7f]")

# A rule may hold a nested or very long value.
_SHORT = reprlib.Repr()
_SHORT.maxlevel = 3
_SHORT.maxstring = _SHORT.maxother = 120
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = _SHORT.maxset = _SHORT.maxfrozenset = 8


def shown(value: Any) -> str:
    """Return ``repr(value)``, cut short."""
    try:
        return _SHORT.repr(value)
    except ValueError:  # an int of thousands of digits
        return f"a very large {type(value).__name__}"


def path_step(key: Any) -> str:
    """Return a key for a problem's path: a str unchanged, any other value as ``shown``."""
    return key if isinstance(key, str) else shown(key)


def parse_rule(path: str, rule: Any, problems: list[str]) -> Mapping[str, Any]:
    """Append each mistake, with its path, to ``problems``."""
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
    elif not is_json(list(value)):
        yield "must hold JSON values only"


def _wrong_length(value: Any) -> Iterator[str]:
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, bool) or not whole or value < 0 or not is_json(value):
        yield f"must be a whole number, 0 or more, not {shown(value)}"


def _wrong_number(value: Any) -> Iterator[str]:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not is_json(value):
        yield f"must be a finite number, not {shown(value)}"


def _wrong_pattern(value: Any) -> Iterator[str]:
    if not isinstance(value, str):
        yield f"must be a regular expression as a str, not {shown(value)}"
    elif characters_at_once(value) is None:
        yield (
            f"{shown(value)} cannot be compiled by the linear-time engine (no look-around, no back "
            "references, no large counted repetitions: bound a length with maxLength)"
        )


def is_json(value: Any) -> bool:
    """Whether a value has JSON types, finite numbers and valid Unicode only."""
    try:
        json.dumps(value, allow_nan=False)
        jsonschema_rs.is_valid({"const": value}, value)
    except (ValueError, TypeError, RecursionError):
        return False
    return True


@lru_cache(maxsize=1024)
def characters_at_once(pattern: str) -> float | None:
    """Return the longest string to match on the event loop; None for an invalid pattern."""
    for size in _PATTERN_SIZES:
        try:
            compiled({"pattern": pattern}, size)
        except ValueError:
            continue
        if len(pattern) <= _TRIVIAL_PATTERN and not _NEVER_TRIVIAL.search(pattern):
            return float("inf")
        return _LOOP_BUDGET_US / (0.4 + 0.00014 * size)
    return None


def compiled(schema: dict[str, Any], size: int = _PATTERN_SIZES[-1]) -> jsonschema_rs.Draft202012Validator:
    """ValueError if a pattern needs more than ``size`` bytes."""
    options = jsonschema_rs.RegexOptions(size_limit=size)
    return jsonschema_rs.Draft202012Validator(schema, pattern_options=options)
