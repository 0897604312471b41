"""Validates the values of a definition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kantan_agents.core.context import reserved_in
from kantan_agents.subagent_files.frontmatter.keys import FIELD_OF, LIMIT_OF, folded
from kantan_agents.subagent_files.json_like import find_invalid_value, is_text
from kantan_agents.subagent_files.tool_list_errors import allowed_list_error, denied_entry_error
from kantan_agents.subagent_files.tool_lists import ALL, includes_all, is_all

MAX_TURNS: Final = 10**9
_TEXTS: Final = (
    "model",
    "color",
    "permission_mode",
    "memory",
    "effort",
    "initial_prompt",
    "category",
    "version",
)
_NOT_UNICODE: Final = "is not valid Unicode (a lone surrogate)"


def validation_errors(definition: Any) -> list[tuple[str, str]]:
    """Return every error in a definition as (field, message)."""
    return [
        *_check_required(definition),
        *_check_texts(definition),
        *_check_lists(definition),
        *_check_turns(definition.max_turns),
        *_check_data(definition),
        *_check_extra(definition),
    ]


def _check_required(definition: Any) -> Iterator[tuple[str, str]]:
    for field in ("name", "description", "system_prompt"):
        value = getattr(definition, field)
        if not isinstance(value, str):
            yield field, f"must be text, not {_kind(value)}"
        elif not is_text(value):
            yield field, _NOT_UNICODE
        elif field != "system_prompt" and not value.strip():
            yield field, "must not be blank"


def _check_texts(definition: Any) -> Iterator[tuple[str, str]]:
    for field in _TEXTS:
        value = getattr(definition, field)
        if value is not None and not isinstance(value, str):
            yield field, f"must be text, not {_kind(value)}"
        elif value is not None and not is_text(value):
            yield field, _NOT_UNICODE


def _check_lists(definition: Any) -> Iterator[tuple[str, str]]:
    for field in ("tools", "disallowed_tools", "skills"):
        value = getattr(definition, field)
        if field == "tools" and value == ALL:
            continue
        if not isinstance(value, tuple) or not all(isinstance(entry, str) for entry in value):
            also = ' or "*"' if field == "tools" else ""
            yield field, f"must be a list of texts{also}, not {_kind(value)}"
        elif not all(is_text(entry) for entry in value):
            yield field, _NOT_UNICODE
        else:
            yield from ((field, error) for error in _tool_list_errors(field, value))


def _tool_list_errors(field: str, entries: tuple[str, ...]) -> Iterator[str]:
    if field == "skills" or (field == "disallowed_tools" and entries == (ALL,)):
        return
    if is_all(entries) or (field == "disallowed_tools" and includes_all(entries)):
        # A file could not hold a tool of that name, because there the word means every tool.
        yield 'contains "all", which is not a tool name; use "*" for all tools'
    elif field == "tools":
        error = allowed_list_error(entries)
        if error:
            yield error
    else:
        yield from filter(None, map(denied_entry_error, entries))


def _check_turns(value: Any) -> Iterator[tuple[str, str]]:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        yield "max_turns", f"must be a whole number, not {_kind(value)}"
    elif not 1 <= value <= MAX_TURNS:
        yield "max_turns", f"must be from 1 to {MAX_TURNS}"


def _check_data(definition: Any) -> Iterator[tuple[str, str]]:
    for field in ("context", "mcp_servers", "hooks"):
        error = find_invalid_value(getattr(definition, field))
        if error:
            yield field, error
    context = definition.context
    if not isinstance(context, str | list | dict | None):
        yield "context", f"must be text, a list or a mapping, not {_kind(context)}"
    if isinstance(context, dict):
        for key in reserved_in(context):
            yield "context", f"contains {key!r}, a key reserved by the library"


def _check_extra(definition: Any) -> Iterator[tuple[str, str]]:
    extra = definition.extra
    if not isinstance(extra, dict):
        yield "extra", f"must be a mapping, not {_kind(extra)}"
        return
    error = find_invalid_value(extra)
    if error:
        yield "extra", error
    for key in extra:
        if not isinstance(key, str):
            continue
        if key not in FIELD_OF:
            limit = LIMIT_OF.get(folded(key))
            if limit is not None:
                yield "extra", f"contains {key!r}, which looks like the field {limit!r}"
            continue
        # A file may have both `model` and `model_name`; then `model` is used and the other is extra.
        if key != "model_name" or definition.model is None:
            yield "extra", f"contains {key!r}, which is the field {FIELD_OF[key]!r}"


def _kind(value: Any) -> str:
    return "None" if value is None else f"a value of the type {type(value).__name__}"
