"""Values with an unquoted ``#``, which YAML reads as comments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from kantan_agents.subagent_files.frontmatter.entries import Entry
from kantan_agents.subagent_files.frontmatter.nodes import Scalar
from kantan_agents.subagent_files.frontmatter.values import is_null

HEX_COLOR: Final = re.compile(r"[^\r\n:]*:[ \t]*(#[0-9a-fA-F]{3,8})[ \t]*(?=[\r\n]|\Z)")

_CHECKED_FIELDS: Final = frozenset({"name", "description"})
_NEXT_LINE: Final = re.compile(r"[\r\n](?=\S)")
# A real comment has a space after the `#`; `#3` is an issue.
_CUT: Final = re.compile(r"\S[ \t]+#(?=\S)")


def repair_colors(
    source: str, entries: list[Entry], offset: int = 0
) -> tuple[list[Entry], list[tuple[int, str]]]:
    """Return the entries with unquoted hex colors as values, and (index, reason) of each."""
    repairs: list[tuple[int, str]] = []
    result = []
    for entry in entries:
        found = None
        if entry.key == "color" and is_null(entry.node):
            found = HEX_COLOR.match(source, entry.index - offset)
        if found:
            repairs.append((entry.index, f"color: {found[1]} is a comment in YAML; it must be quoted"))
        result.append(attrs.evolve(entry, node=Scalar(found[1], entry.index, '"')) if found else entry)
    return result, repairs


def truncated_texts(front: str, entries: Iterable[Entry]) -> Iterator[tuple[int, str]]:
    """Yield (index, message) for each string that an unquoted ``#`` cuts off."""
    for entry in entries:
        node = entry.node
        if entry.key in _CHECKED_FIELDS and isinstance(node, Scalar) and node.style is None and node.text:
            colon = front.find(":", entry.index)
            following = _NEXT_LINE.search(front, colon)
            found = _CUT.search(front, colon, following.start() if following else len(front))
            if found:
                message = f"{entry.key}: the text ends before '#', which begins a comment; put it in quotes"
                yield found.start(), message
