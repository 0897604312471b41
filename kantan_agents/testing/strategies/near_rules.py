"""Values near a rule's limits."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
from hypothesis import strategies as st

from kantan_agents.tool_rules import ParameterChecks
from kantan_agents.tool_rules.parameters import ParameterRule

_LONGEST = 20_000


@attrs.frozen(eq=False)
class ValuesNear:
    """Values for one parameter rule, by whether they comply."""

    valid: list[Any]
    invalid: list[Any]
    matching: st.SearchStrategy[str] | None

    @classmethod
    def for_rule(cls, keywords: Mapping[str, Any]) -> ValuesNear:
        """For the keywords of one parameter."""
        checks = ParameterChecks((ParameterRule("tool", "value", keywords),))
        sorted_out: tuple[list[Any], list[Any]] = ([], [])
        for value in candidates(keywords):
            sorted_out[checks.breach("tool", {"value": value}) is not None].append(value)
        return cls(*sorted_out, matching=matching_texts(keywords.get("pattern")))

    def near(self, valid: bool) -> st.SearchStrategy[Any]:
        """Compliant or violating values."""
        chosen = self.valid if valid else self.invalid
        values = st.sampled_from(chosen or [*self.valid, *self.invalid])
        return values | self.matching if valid and self.matching is not None else values


def placed(inside: Any, steps: Sequence[str], value: Any) -> Any:
    """Missing objects and arrays are created."""
    if not steps:
        return value
    first, rest = steps[0], steps[1:]
    if first == "[]":
        items = inside if isinstance(inside, list) and inside else [None]
        return [placed(item, rest, value) for item in items]
    known = inside if isinstance(inside, dict) else {}
    return {**known, first: placed(known.get(first), rest, value)}


def candidates(keywords: Mapping[str, Any]) -> list[Any]:
    """Values of each type, and near the limits."""
    values = [None, True, False, 0, 1, 1.0, 0.5, -1, "", "text", "7", [], ["item"], {}, {"key": 1}]
    for value in keywords.get("enum", ()):
        values += [value, [value]]
    for keyword in ("minimum", "maximum"):
        values += _around(keywords[keyword]) if keyword in keywords else ()
    for keyword in ("minLength", "maxLength"):
        values += _texts_around(int(keywords[keyword])) if keyword in keywords else ()
    # Without duplicates, and copied: a test may change its arguments without effect on the next one.
    return [json.loads(text) for text in dict.fromkeys(map(json.dumps, values))]


def _around(limit: float) -> Iterable[Any]:
    yield from (limit - 1, limit, limit + 1, str(limit))
    if abs(limit) < 1 << 53:
        yield from (float(limit), limit - 0.5, limit + 0.5, int(limit))


def _texts_around(limit: int) -> Iterable[str]:
    for length in (limit - 1, limit, limit + 1):
        if 0 <= length <= _LONGEST:
            yield "a" * length
            yield "\N{MATHEMATICAL SCRIPT SMALL X}" * length  # one character, but four bytes


def matching_texts(pattern: str | None) -> st.SearchStrategy[str] | None:
    """None if Python cannot parse the pattern."""
    if pattern is None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # As in JSON Schema: no newline after the end, and only ASCII digits.
            ends = pattern.endswith("$") and not pattern.endswith("\\$")
            compiled = re.compile(pattern[:-1] + r"\Z" if ends else pattern, re.ASCII)
    except (re.error, Warning):
        return None  # the engine of the rules supports some patterns that Python does not
    return st.from_regex(compiled, alphabet=st.characters(codec="utf-8"))
