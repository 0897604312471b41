"""Texts that end sooner than they look: to YAML, `` #`` begins a comment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from kantan_agents.definitions.frontmatter.entries import Entry
from kantan_agents.definitions.frontmatter.nodes import Scalar

_FIELDS: Final = frozenset({"name", "description"})
_NEXT: Final = re.compile(r"[\r\n](?=\S)")
# A comment begins with a blank, the number of an issue does not.
_CUT: Final = re.compile(r"\S[ \t]+#(?=\S)")


def cut_texts(front: str, entries: Iterable[Entry]) -> Iterator[tuple[int, str]]:
    """Yield a remark on each name and description that a ``#`` has cut, as (index, words)."""
    for entry in entries:
        node = entry.node
        if entry.key in _FIELDS and isinstance(node, Scalar) and node.style is None and node.text:
            colon = front.find(":", entry.index)
            following = _NEXT.search(front, colon)
            found = _CUT.search(front, colon, following.start() if following else len(front))
            if found:
                yield found.start(), f"{entry.key}: ends before '#', as a comment does; put it in quotes"
