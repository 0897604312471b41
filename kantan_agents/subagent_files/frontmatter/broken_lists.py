"""Parses lists that are not valid YAML: unusual bullets, brackets and quotes that are not closed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from kantan_agents.subagent_files.frontmatter.nodes import Items, Node, Scalar
from kantan_agents.subagent_files.frontmatter.pieces import SPACES
from kantan_agents.subagent_files.tool_lists import ALL, split_at, split_text, strip_wrapping

COMMENT: Final = re.compile(r"(?m)(?<=\S)[ \t]+#.*$")
"""A comment after a value."""

_BULLET: Final = re.compile(rf"-(?:[{SPACES}]+|\Z)|[*+\u2022](?:[{SPACES}]+(?=\S))")
_STAR: Final = re.compile(rf"\*[{SPACES}]")


def parse_broken_list(text: str, *, is_denied: bool) -> Node:
    """Return the list that the text after a key probably means.

    Args:
        text: The text, with its lines dedented.
        is_denied: Whether this is the list of denied tools. Then every word becomes an entry, since entries
            that are not names are refused later, and a ``*`` on the key's own line means all tools.
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
            # Text without commas is split at white space, which the reader of the field does later.
            return Scalar(" ".join(map(strip_wrapping, split_text(whole))), 0, '"')
    return _items(strip_wrapping(part) for item in items for part in split_at(item, commas=True))


def _items(names: Iterable[str]) -> Items:
    return Items([Scalar(name, 0, '"') for name in names if name], 0)
