"""Lists that are no YAML: bullets of every kind, brackets and quotes that do not close."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from kantan_agents.definitions.frontmatter.nodes import Items, Node, Scalar
from kantan_agents.definitions.frontmatter.pieces import SPACES
from kantan_agents.definitions.tool_lists import ALL, bare, split_at, split_text

COMMENT: Final = re.compile(r"(?m)(?<=\S)[ \t]+#.*$")
"""A comment behind a value."""

_BULLET: Final = re.compile(rf"-(?:[{SPACES}]+|\Z)|[*+\u2022](?:[{SPACES}]+(?=\S))")
_STAR: Final = re.compile(rf"\*[{SPACES}]")


def broken_list(text: str, *, is_denied: bool) -> Node:
    """Return the list that the text behind a key is meant to be.

    Args:
        text: The text, without the indentation of its lines.
        is_denied: Whether the list says what may not be used. Then every word counts, for what is no name
            is refused later; and a star on the line of the key is no bullet but all tools.
    """
    first, *below = (line.strip(SPACES) for line in COMMENT.sub("", text).split("\n"))
    lines = [line for line in (first, *below) if not line.startswith("#")]
    if is_denied and _STAR.match(first) and not any(map(_STAR.match, below)):
        return _items([ALL])
    is_listed = any(map(_BULLET.match, lines))
    items = [_BULLET.sub("", line, count=1) for line in lines] if is_listed else [" ".join(lines)]
    if is_denied:
        return _items(item.replace('\\"', '"') for item in items)
    if not is_listed:
        whole = items[0].strip().removeprefix("[").removesuffix("]")
        items = list(split_at(whole, commas=True))
        if len(items) == 1:
            # One text without commas: white space separates, and the reader of the field knows how.
            return Scalar(" ".join(map(bare, split_text(whole))), 0, '"')
    return _items(bare(part) for item in items for part in split_at(item, commas=True))


def _items(names: Iterable[str]) -> Items:
    return Items([Scalar(name, 0, '"') for name in names if name], 0)
