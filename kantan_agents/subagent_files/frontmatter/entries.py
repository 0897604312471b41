"""Translates keys into the fields of a definition."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import attrs

from kantan_agents.subagent_files.frontmatter.keys import (
    DATA,
    FIELD_OF,
    KEY_OF,
    LIMITS,
    LISTS,
    field_of,
    looks_like,
)
from kantan_agents.subagent_files.frontmatter.nodes import Fields, Items, Node, RefusedYamlError, Scalar
from kantan_agents.subagent_files.frontmatter.values import is_null, to_data
from kantan_agents.subagent_files.tool_list_errors import allowed_list_error, denied_entry_error
from kantan_agents.subagent_files.tool_lists import (
    ALL,
    ToolFilter,
    includes_all,
    intersection,
    is_all,
    split_denied,
    split_items,
    split_text,
    strip_quotes,
)

_LITERAL_NEWLINE: Final = re.compile(r"\\{1,2}n")
_DIGITS: Final = re.compile(r"[0-9]{1,18}\Z")


@attrs.frozen
class Entry:
    """A top-level key with its value and its index."""

    key: str
    node: Node
    index: int


@attrs.define
class ParsedFields:
    """The fields of a definition; errors are (field, message), warnings (index, message)."""

    values: dict[str, Any] = attrs.field(factory=dict)
    positions: dict[str, int] = attrs.field(factory=dict)
    errors: list[tuple[str, str]] = attrs.field(factory=list)
    warnings: list[tuple[int, str]] = attrs.field(factory=list)


REQUIRED: Final = ("name", "description")


def parse_fields(entries: Iterable[Entry], required: Sequence[str] = REQUIRED) -> ParsedFields:
    """Return the fields of one file, with all errors."""
    parsed = ParsedFields()
    grouped: dict[str, list[Entry]] = {}
    entries = list(entries)
    # Kode writes `model_name`, Claude Code `model`, which has priority.
    has_model = any(entry.key == "model" and not is_null(entry.node) for entry in entries)
    for entry in entries:
        field = "" if has_model and entry.key == "model_name" else FIELD_OF.get(entry.key, "")
        if not field:
            field = _field_of_other_spelling(entry, parsed)
        grouped.setdefault(field, []).append(entry)
    _parse_extra(grouped.pop("", []), parsed)
    for field, same in grouped.items():
        parsed.positions[field] = same[-1].index
        try:
            _parse_field(field, same, parsed)
        except _FieldError as error:
            parsed.errors.append((field, str(error)))
        except RefusedYamlError as error:
            parsed.errors.append((field, error.reason))
    missing = [field for field in required if _is_missing(field, parsed)]
    parsed.errors[:0] = [(field, "is missing") for field in missing]
    return parsed


def unescape_newlines(text: str) -> str:
    r"""Replace each literal ``\n`` in a description by a newline."""
    return _LITERAL_NEWLINE.sub("\n", text) if "\\n" in text else text


class _FieldError(Exception):
    pass


def _is_missing(field: str, parsed: ParsedFields) -> bool:
    return field not in parsed.values and all(field != wrong for wrong, _ in parsed.errors)


def _field_of_other_spelling(entry: Entry, parsed: ParsedFields) -> str:
    key = entry.key
    if key in FIELD_OF:
        return ""
    field, similar = field_of(key), looks_like(key)
    if field is not None:
        parsed.warnings.append((entry.index, f"{key}: read as {KEY_OF[field]}"))
        return field
    if similar in LIMITS:
        parsed.positions.setdefault(key, entry.index)
        parsed.errors.append((key, f"looks like {KEY_OF[similar]}, but is spelled {key[:60]!a}"))
    elif similar is not None:
        message = f"{key}: not read as {KEY_OF[similar]}, which is spelled differently"
        parsed.warnings.append((entry.index, message))
    elif "tool" in key.lower():
        message = f"{key}: does not limit the tools; use tools and disallowedTools"
        parsed.warnings.append((entry.index, message))
    return ""


def _parse_extra(entries: list[Entry], parsed: ParsedFields) -> None:
    extra: dict[str, Any] = {}
    for entry in entries:
        key = entry.key
        if key in extra:
            parsed.warnings.append((entry.index, f"{key}: appears twice; the last value is used"))
        try:
            extra[key] = to_data(entry.node)
        except RefusedYamlError as error:
            parsed.positions.setdefault(key, entry.index)
            parsed.errors.append((key, error.reason))
        parsed.positions.setdefault("extra", entry.index)
    if extra:
        parsed.values["extra"] = extra


def _parse_field(field: str, same: list[Entry], parsed: ParsedFields) -> None:
    if field == "tools":
        parsed.values[field] = _parse_allowed(same, parsed)
        return
    if field == "disallowed_tools":
        parsed.values[field] = _parse_denied(same, parsed)
        return
    present = [entry for entry in same if not is_null(entry.node)]
    if len(same) > 1:
        parsed.warnings.append((same[-1].index, f"{same[-1].key}: appears twice; the last value is used"))
    if present and field == "model":
        parsed.values[field] = _parse_model(present[-1], parsed)
    elif present:
        parsed.values[field] = _READERS.get(field, _text)(present[-1].node)


def _parse_model(entry: Entry, parsed: ParsedFields) -> str | None:
    if not isinstance(entry.node, Items):
        return _text(entry.node)
    names = _texts(entry.node)
    used = f"the first is used, {names[0][:60]}" if names else "it is empty, so the default model is used"
    parsed.warnings.append((entry.index, f"{entry.key}: a list of models; {used}"))
    return names[0] if names else None


def _parse_allowed(same: list[Entry], parsed: ParsedFields) -> ToolFilter:
    allowed: ToolFilter = ALL
    for entry in same:
        parsed.positions["tools"] = entry.index
        allowed = intersection(allowed, _tool_filter(entry.node))
    if len(same) > 1:
        message = f"{same[-1].key}: a second list of tools; only tools in both lists are allowed"
        parsed.warnings.append((same[-1].index, message))
    return allowed


def _tool_filter(node: Node) -> ToolFilter:
    if isinstance(node, Scalar) and node.text.strip().lower() == "all tools":
        return ALL
    entries = strip_quotes(_list(node))
    # Each list alone: the intersection may drop the wrong entry.
    error = allowed_list_error(entries)
    if error is not None:
        raise _FieldError(error)
    return ALL if is_all(entries) else entries


def _parse_denied(same: list[Entry], parsed: ParsedFields) -> tuple[str, ...]:
    denied: list[str] = []
    for entry in same:
        parsed.positions["disallowed_tools"] = entry.index
        names = split_denied(_texts(entry.node))
        if includes_all(names):
            names = (ALL,)
        error = next(filter(None, map(denied_entry_error, names)), None)
        if error is not None:
            raise _FieldError(error)
        denied += names
    return (ALL,) if ALL in denied else tuple(dict.fromkeys(denied))


def _list(node: Node) -> tuple[str, ...]:
    if isinstance(node, Scalar):
        return () if is_null(node) else split_text(node.text)
    return split_items(_texts(node))


def _texts(node: Node) -> list[str]:
    if isinstance(node, Fields):
        raise _FieldError("must be a list of names or a text, not a mapping")
    items = [node] if isinstance(node, Scalar) else node.items
    wrong = next((item for item in items if not isinstance(item, Scalar)), None)
    if wrong is not None:
        raise _FieldError(f"contains {_kind(wrong)} where a name is expected")
    return [item.text for item in items if not is_null(item)]


def _text(node: Node) -> str:
    if not isinstance(node, Scalar):
        raise _FieldError(f"must be text, not {_kind(node)}")
    # The last line end of a block scalar is YAML syntax, not the author's.
    return node.text.rstrip("\n") if node.style in ("|", ">") else node.text


def _description(node: Node) -> str:
    text = _text(node)
    return text if isinstance(node, Scalar) and node.keeps_backslashes else unescape_newlines(text)


def _turns(node: Node) -> int:
    text = _text(node).strip()
    if not _DIGITS.match(text):
        raise _FieldError(f"must be a whole number, not {text[:40]!r}")
    return int(text)


def _context(node: Node) -> Any:
    return _text(node) if isinstance(node, Scalar) else to_data(node)


def _kind(node: Node) -> str:
    return "a list" if isinstance(node, Items) else "a mapping"


_READERS: Final[dict[str, Callable[[Node], Any]]] = {
    "description": _description,
    "max_turns": _turns,
    "context": _context,
    **dict.fromkeys(DATA - {"context"}, to_data),
    **dict.fromkeys(LISTS - {"tools", "disallowed_tools"}, _list),
}
