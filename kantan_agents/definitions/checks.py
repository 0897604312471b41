"""What a definition must be made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kantan_agents.definitions.frontmatter.keys import FIELD_OF, LIMIT_OF, folded
from kantan_agents.definitions.plain_data import flaw, is_text
from kantan_agents.definitions.tool_flaws import flaw_of_allowed, flaw_of_denied
from kantan_agents.definitions.tool_lists import ALL, means_all, names_all

RESERVED: Final = frozenset({"tool_rules", "result", "history"})
"""Keys of the run's context that a definition may not set."""

MOST_TURNS: Final = 10**9
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
_NO_UNICODE: Final = "is no Unicode (a lone surrogate)"


def mistakes_in(definition: Any) -> list[tuple[str, str]]:
    """Return every mistake of a definition as (field, what is wrong with it)."""
    return [
        *_required(definition),
        *_texts(definition),
        *_lists(definition),
        *_turns(definition.max_turns),
        *_data(definition),
        *_extra(definition),
    ]


def _required(definition: Any) -> Iterator[tuple[str, str]]:
    for field in ("name", "description", "system_prompt"):
        value = getattr(definition, field)
        if not isinstance(value, str):
            yield field, f"must be a text, is {_kind(value)}"
        elif not is_text(value):
            yield field, _NO_UNICODE
        elif field != "system_prompt" and not value.strip():
            yield field, "must not be blank"


def _texts(definition: Any) -> Iterator[tuple[str, str]]:
    for field in _TEXTS:
        value = getattr(definition, field)
        if value is not None and not isinstance(value, str):
            yield field, f"must be a text, is {_kind(value)}"
        elif value is not None and not is_text(value):
            yield field, _NO_UNICODE


def _lists(definition: Any) -> Iterator[tuple[str, str]]:
    for field in ("tools", "disallowed_tools", "skills"):
        value = getattr(definition, field)
        if field == "tools" and value == ALL:
            continue
        if not isinstance(value, tuple) or not all(isinstance(entry, str) for entry in value):
            also = ' or "*"' if field == "tools" else ""
            yield field, f"must be a list of texts{also}, is {_kind(value)}"
        elif not all(is_text(entry) for entry in value):
            yield field, _NO_UNICODE
        else:
            yield from ((field, flaw) for flaw in _flaws(field, value))


def _flaws(field: str, entries: tuple[str, ...]) -> Iterator[str]:
    if field == "skills" or (field == "disallowed_tools" and entries == (ALL,)):
        return
    if means_all(entries) or (field == "disallowed_tools" and names_all(entries)):
        # In a file the word stands for every tool, so a tool of that name could not be written.
        yield 'holds "all", which is no tool\'s name; all tools are "*"'
    elif field == "tools":
        found = flaw_of_allowed(entries)
        if found:
            yield found
    else:
        yield from filter(None, map(flaw_of_denied, entries))


def _turns(value: Any) -> Iterator[tuple[str, str]]:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        yield "max_turns", f"must be a whole number, is {_kind(value)}"
    elif not 1 <= value <= MOST_TURNS:
        yield "max_turns", f"must be from 1 to {MOST_TURNS}"


def _data(definition: Any) -> Iterator[tuple[str, str]]:
    for field in ("context", "mcp_servers", "hooks"):
        found = flaw(getattr(definition, field))
        if found:
            yield field, found
    context = definition.context
    if not isinstance(context, str | list | dict | None):
        yield "context", f"must be a text, a list or a mapping, is {_kind(context)}"
    if isinstance(context, dict):
        taken = sorted(key for key in context if isinstance(key, str) and key in RESERVED)
        yield from (("context", f"holds {key!r}, a key the library keeps for itself") for key in taken)


def _extra(definition: Any) -> Iterator[tuple[str, str]]:
    extra = definition.extra
    if not isinstance(extra, dict):
        yield "extra", f"must be a mapping, is {_kind(extra)}"
        return
    found = flaw(extra)
    if found:
        yield "extra", found
    for key in extra:
        if not isinstance(key, str):
            continue
        if key not in FIELD_OF:
            limit = LIMIT_OF.get(folded(key))
            if limit is not None:
                yield "extra", f"holds {key!r}, which looks like the field {limit!r}"
            continue
        # A file may carry both; then ``model`` counts and the other is kept.
        if key != "model_name" or definition.model is None:
            yield "extra", f"holds {key!r}, which is the field {FIELD_OF[key]!r}"


def _kind(value: Any) -> str:
    return "None" if value is None else f"of the type {type(value).__name__}"
