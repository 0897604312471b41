"""From the keys of a frontmatter to the fields of a definition."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

import attrs

from kantan_agents.definitions.frontmatter.keys import (
    DATA,
    FIELD_OF,
    LIMITS,
    LISTS,
    WRITTEN,
    field_of,
    looks_like,
)
from kantan_agents.definitions.frontmatter.nodes import Fields, Items, Node, RefusedYamlError, Scalar
from kantan_agents.definitions.frontmatter.values import data, is_null
from kantan_agents.definitions.tool_flaws import flaw_of_allowed, flaw_of_denied
from kantan_agents.definitions.tool_lists import (
    ALL,
    ToolFilter,
    both,
    means_all,
    names_all,
    split_denied,
    split_items,
    split_text,
    unwrapped,
)

_LITERAL_NEWLINE: Final = re.compile(r"\\{1,2}n")
_DIGITS: Final = re.compile(r"[0-9]{1,18}\Z")


@attrs.frozen
class Entry:
    """One top-level key of a frontmatter with its value; ``index`` is where it stands."""

    key: str
    node: Node
    index: int


@attrs.define
class Meaning:
    """What the entries say.

    Attributes:
        values: Arguments for the definition.
        places: Field -> index of its key.
        mistakes: (field, what is wrong with it).
        remarks: (index, what is worth knowing).
    """

    values: dict[str, Any] = attrs.field(factory=dict)
    places: dict[str, int] = attrs.field(factory=dict)
    mistakes: list[tuple[str, str]] = attrs.field(factory=list)
    remarks: list[tuple[int, str]] = attrs.field(factory=list)


def meaning(entries: Iterable[Entry]) -> Meaning:
    """Return what the entries of one file say, all mistakes gathered."""
    found = Meaning()
    grouped: dict[str, list[Entry]] = {}
    listed = list(entries)
    # Kode writes `model_name`, Claude Code `model`: where both stand there the second one counts.
    has_model = any(entry.key == "model" and not is_null(entry.node) for entry in listed)
    for entry in listed:
        field = "" if has_model and entry.key == "model_name" else FIELD_OF.get(entry.key, "")
        if not field:
            field = _of_another_spelling(entry, found)
        grouped.setdefault(field, []).append(entry)
    _extra(grouped.pop("", []), found)
    for field, same in grouped.items():
        found.places[field] = same[-1].index
        try:
            _field(field, same, found)
        except _MistakeError as error:
            found.mistakes.append((field, str(error)))
        except RefusedYamlError as error:
            found.mistakes.append((field, error.reason))
    found.mistakes[:0] = [(field, "is missing") for field in ("name", "description") if _lacks(field, found)]
    return found


def with_newlines(text: str) -> str:
    r"""Return a description with its literal ``\n`` made newlines."""
    return _LITERAL_NEWLINE.sub("\n", text) if "\\n" in text else text


class _MistakeError(Exception):
    pass


def _lacks(field: str, found: Meaning) -> bool:
    return field not in found.values and all(field != wrong for wrong, _ in found.mistakes)


def _of_another_spelling(entry: Entry, found: Meaning) -> str:
    """Return the field of a key that is not known as it is spelled, "" for none; remark what it may mean."""
    key = entry.key
    if key in FIELD_OF:
        return ""
    field, meant = field_of(key), looks_like(key)
    if field is not None:
        found.remarks.append((entry.index, f"{key}: read as {WRITTEN[field]}"))
        return field
    if meant in LIMITS:
        found.places.setdefault(key, entry.index)
        words = f"looks like {WRITTEN[meant]}, but is spelled {key[:60]!a}"
        found.mistakes.append((key, words))
    elif meant is not None:
        found.remarks.append(
            (entry.index, f"{key}: not read as {WRITTEN[meant]}, which is spelled otherwise")
        )
    elif "tool" in key.lower():
        words = "limits no tools; the keys that do are tools and disallowedTools"
        found.remarks.append((entry.index, f"{key}: {words}"))
    return ""


def _extra(entries: list[Entry], found: Meaning) -> None:
    extra: dict[str, Any] = {}
    for entry in entries:
        key = entry.key
        if key in extra:
            found.remarks.append((entry.index, f"{key}: stands there twice; the last one counts"))
        try:
            extra[key] = data(entry.node)
        except RefusedYamlError as error:
            found.places.setdefault(key, entry.index)
            found.mistakes.append((key, error.reason))
        found.places.setdefault("extra", entry.index)
    if extra:
        found.values["extra"] = extra


def _field(field: str, same: list[Entry], found: Meaning) -> None:
    if field == "tools":
        found.values[field] = _allowed(same, found)
        return
    if field == "disallowed_tools":
        found.values[field] = _denied(same, found)
        return
    said = [entry for entry in same if not is_null(entry.node)]
    if len(same) > 1:
        found.remarks.append((same[-1].index, f"{same[-1].key}: stands there twice; the last one counts"))
    if said:
        found.values[field] = _READERS.get(field, _text)(said[-1].node)


def _allowed(same: list[Entry], found: Meaning) -> ToolFilter:
    allowed: ToolFilter = ALL
    for entry in same:
        found.places["tools"] = entry.index
        allowed = both(allowed, _filter(entry.node))
    if len(same) > 1:
        message = f"{same[-1].key}: a second list of tools; only what is in each of them is allowed"
        found.remarks.append((same[-1].index, message))
    return allowed


def _filter(node: Node) -> ToolFilter:
    if isinstance(node, Scalar) and node.text.strip().lower() == "all tools":
        return ALL
    entries = unwrapped(_listed(node))
    # Here and not only for what both lists allow: two lists may share the very word that is wrong.
    flaw = flaw_of_allowed(entries)
    if flaw is not None:
        raise _MistakeError(flaw)
    return ALL if means_all(entries) else entries


def _denied(same: list[Entry], found: Meaning) -> tuple[str, ...]:
    denied: list[str] = []
    for entry in same:
        found.places["disallowed_tools"] = entry.index
        names = split_denied(_texts(entry.node))
        if names_all(names):
            names = (ALL,)
        flaw = next(filter(None, map(flaw_of_denied, names)), None)
        if flaw is not None:
            raise _MistakeError(flaw)
        denied += names
    return (ALL,) if ALL in denied else tuple(dict.fromkeys(denied))


def _listed(node: Node) -> tuple[str, ...]:
    if isinstance(node, Scalar):
        return () if is_null(node) else split_text(node.text)
    return split_items(_texts(node))


def _texts(node: Node) -> list[str]:
    if isinstance(node, Fields):
        raise _MistakeError("must be a list of names or a text, is a mapping")
    items = [node] if isinstance(node, Scalar) else node.items
    wrong = next((item for item in items if not isinstance(item, Scalar)), None)
    if wrong is not None:
        raise _MistakeError(f"holds {_kind(wrong)} where a name must stand")
    return [item.text for item in items if not is_null(item)]


def _text(node: Node) -> str:
    if not isinstance(node, Scalar):
        raise _MistakeError(f"must be a text, is {_kind(node)}")
    # The line end that closes a block is YAML's, not the author's.
    return node.text.rstrip("\n") if node.style in ("|", ">") else node.text


def _description(node: Node) -> str:
    text = _text(node)
    return text if isinstance(node, Scalar) and node.as_it_is else with_newlines(text)


def _turns(node: Node) -> int:
    text = _text(node).strip()
    if not _DIGITS.match(text):
        raise _MistakeError(f"must be a whole number, is {text[:40]!r}")
    return int(text)


def _context(node: Node) -> Any:
    return _text(node) if isinstance(node, Scalar) else data(node)


def _kind(node: Node) -> str:
    return "a list" if isinstance(node, Items) else "a mapping"


_READERS: Final[dict[str, Callable[[Node], Any]]] = {
    "description": _description,
    "max_turns": _turns,
    "context": _context,
    **dict.fromkeys(DATA - {"context"}, data),
    **dict.fromkeys(LISTS - {"tools", "disallowed_tools"}, _listed),
}
