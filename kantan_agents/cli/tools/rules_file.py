"""A file of tool rules: JSON, either a rule set or a context with one under ``tool_rules``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import Any

from kantan_agents.cli.terminal.inputs import STDIN, read_stdin, read_text
from kantan_agents.errors import FileArgumentError, InvalidToolRulesError
from kantan_agents.tool_rules import ToolRules

CONTEXT_KEY = "tool_rules"


class _Object(dict[str, Any]):
    """A JSON object that still knows all its pairs: of two with one key, a dict keeps the last."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def read_rules(file: str) -> dict[str, Any]:
    """Return the rules in ``file``, in the public dict shape; ``-`` is standard input.

    Raises:
        FileArgumentError: E79, the file cannot be read or holds no JSON object.
        InvalidToolRulesError: E20, with every mistake and its path, keys that stand twice among them.
    """
    content = _parsed(file)
    try:
        readings = [_reading(content, index) for index in range(_most(content))]
        mistakes = dict.fromkeys(mistake for reading in readings for mistake in _mistakes(reading))
        problems = [*_found_twice(content), *mistakes]
    except RecursionError as error:
        raise FileArgumentError(path=file, reason="it is nested too deeply") from error
    if problems:
        raise InvalidToolRulesError(problems=problems)
    return (content[CONTEXT_KEY] or {}) if CONTEXT_KEY in content else content


def _parsed(file: str) -> _Object:
    text = read_stdin() if file == STDIN else read_text(Path(file))
    try:
        content = json.loads(text, object_pairs_hook=_Object)
    except (ValueError, RecursionError) as error:
        raise FileArgumentError(path=file, reason=f"it is no JSON ({error})") from error
    if not isinstance(content, _Object):
        kind = type(content).__name__
        raise FileArgumentError(path=file, reason=f"it must hold a JSON object, not a {kind}")
    return content


def _most(content: _Object) -> int:
    """Return how often a key stands in one object at the most; 1 in a good file."""
    objects = [value for _, value in _values(content) if isinstance(value, _Object)]
    return max(max(_times(value).values(), default=1) for value in objects)


def _times(value: _Object) -> Counter[str]:
    return Counter(key for key, _ in value.pairs)


def _reading(value: Any, index: int) -> Any:
    """Return a value as it is with the ``index``-th of equal keys: each may have mistakes of its own."""
    if isinstance(value, list):
        return [_reading(item, index) for item in value]
    if not isinstance(value, _Object):
        return value
    places: dict[str, list[Any]] = {}
    for key, inner in value.pairs:
        places.setdefault(key, []).append(inner)
    return {key: _reading(found[min(index, len(found) - 1)], index) for key, found in places.items()}


def _mistakes(content: dict[str, Any]) -> Iterator[str]:
    if CONTEXT_KEY not in content:
        yield from _rule_mistakes(content)
        return
    for key in ("allow", "deny", "params"):
        if key in content:
            yield f"{key}: stands beside {CONTEXT_KEY}, where it rules nothing"
    for path, value in _values({k: v for k, v in content.items() if k != CONTEXT_KEY}):
        if isinstance(value, float) and not isfinite(value):
            yield f"{path}: {value} is no number of JSON"
    rules = content[CONTEXT_KEY]
    if rules is not None and not isinstance(rules, dict):
        yield f"{CONTEXT_KEY}: must be an object with allow, deny and params, not a {type(rules).__name__}"
    elif rules is not None:
        yield from (f"{CONTEXT_KEY}.{problem}" for problem in _rule_mistakes(rules))


def _rule_mistakes(rules: dict[str, Any]) -> tuple[str, ...]:
    try:
        ToolRules.parse(rules)
    except InvalidToolRulesError as error:
        return error.problems
    return ()


def _found_twice(content: _Object) -> Iterator[str]:
    for path, value in _values(content):
        for key, times in _times(value).items() if isinstance(value, _Object) else ():
            if times > 1:
                yield f"{_joined(path, key)}: stands {times} times, only the last one counts"


def _values(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value with its path, those that a later one of the same key hides included."""
    yield path, value
    if isinstance(value, dict):
        for key, inner in value.pairs if isinstance(value, _Object) else value.items():
            yield from _values(inner, _joined(path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _values(inner, f"{path}[{index}]")


def _joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
