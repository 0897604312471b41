"""Reads and checks tool rules."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import Any

import typer

from kantan_agents.cli.terminal.failures import exit_code
from kantan_agents.cli.terminal.inputs import STDIN, read_stdin, read_text
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.errors import FileArgumentError, InvalidOptionError, InvalidToolRulesError
from kantan_agents.tool_rules import ToolRules
from kantan_agents.tool_rules.full_shells import remark_on_entry

CONTEXT_KEY = "tool_rules"


class _Object(dict[str, Any]):
    """A JSON object with all its pairs in ``pairs``; as a dict it has only the last of equal keys."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def check_rules(file: str) -> None:
    """Print mistakes; exit with 2 for any."""
    try:
        rules = read_rules(file)
    except InvalidToolRulesError as error:
        for problem in error.problems:
            typer.echo(one_line(problem))
        raise typer.Exit(exit_code(error)) from error
    for remark in filter(None, map(remark_on_entry, rules.get("allow") or ())):
        typer.echo(f"warning: {one_line(f'allow: {remark}')}", err=True)
    typer.echo(f"{one_line(file)}: no mistakes")


def read_rules(file: str) -> dict[str, Any]:
    """Return the rules of a file, or of ``-``; E20 has every mistake."""
    content = _parse(file)
    try:
        variants = [_variant(content, index) for index in range(_max_duplicates(content))]
        mistakes = dict.fromkeys(mistake for variant in variants for mistake in _mistakes(variant))
        problems = [*_duplicate_keys(content), *mistakes]
    except RecursionError as error:
        raise FileArgumentError(path=file, reason="it is nested too deeply") from error
    if problems:
        raise InvalidToolRulesError(problems=problems)
    return (content[CONTEXT_KEY] or {}) if CONTEXT_KEY in content else content


def add_rules(context: dict[str, Any], file: str, question: str) -> None:
    """Set the rules in ``file`` as ``tool_rules`` of ``context``; E75 if it has other rules."""
    if file == STDIN == question:
        raise InvalidOptionError(option="--rules", reason="standard input is already read for the question")
    rules, present = read_rules(file), context.get(CONTEXT_KEY)
    if present is not None and ToolRules.parse(present) not in (ToolRules.parse(rules), ToolRules()):
        # Merging them could allow what the context does not, and replacing them what it denies.
        raise InvalidOptionError(option="--rules", reason=f"the context has other rules in {CONTEXT_KEY}")
    context[CONTEXT_KEY] = rules


def _parse(file: str) -> _Object:
    text = read_stdin() if file == STDIN else read_text(Path(file))
    try:
        content = json.loads(text, object_pairs_hook=_Object)
    except (ValueError, RecursionError) as error:
        raise FileArgumentError(path=file, reason=f"it is not JSON ({error})") from error
    if not isinstance(content, _Object):
        kind = type(content).__name__
        raise FileArgumentError(path=file, reason=f"it must contain a JSON object, not a {kind}")
    return content


def _max_duplicates(content: _Object) -> int:
    objects = [value for _, value in _values(content) if isinstance(value, _Object)]
    return max(max(_key_counts(value).values(), default=1) for value in objects)


def _key_counts(value: _Object) -> Counter[str]:
    return Counter(key for key, _ in value.pairs)


def _variant(value: Any, index: int) -> Any:
    """Return a value with the ``index``-th of duplicate keys, to check them all."""
    if isinstance(value, list):
        return [_variant(item, index) for item in value]
    if not isinstance(value, _Object):
        return value
    values: dict[str, list[Any]] = {}
    for key, inner in value.pairs:
        values.setdefault(key, []).append(inner)
    return {key: _variant(found[min(index, len(found) - 1)], index) for key, found in values.items()}


def _mistakes(content: dict[str, Any]) -> Iterator[str]:
    if CONTEXT_KEY not in content:
        yield from _rule_mistakes(content)
        return
    for key in ("allow", "deny", "params"):
        if key in content:
            yield f"{key}: has no effect outside {CONTEXT_KEY}"
    for path, value in _values({k: v for k, v in content.items() if k != CONTEXT_KEY}):
        if isinstance(value, float) and not isfinite(value):
            yield f"{path}: {value} is not a JSON number"
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


def _duplicate_keys(content: _Object) -> Iterator[str]:
    for path, value in _values(content):
        for key, count in _key_counts(value).items() if isinstance(value, _Object) else ():
            if count > 1:
                yield f"{_join(path, key)}: appears {count} times; only the last one is used"


def _values(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    yield path, value
    if isinstance(value, dict):
        for key, inner in value.pairs if isinstance(value, _Object) else value.items():
            yield from _values(inner, _join(path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _values(inner, f"{path}[{index}]")


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
