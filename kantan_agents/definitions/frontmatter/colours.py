"""Colours such as ``#ff0000`` that stand in no quotes: to YAML they are comments."""

from __future__ import annotations

import re
from typing import Final

import attrs

from kantan_agents.definitions.frontmatter.entries import Entry
from kantan_agents.definitions.frontmatter.nodes import Scalar
from kantan_agents.definitions.frontmatter.values import is_null

HEX: Final = re.compile(r"[^\r\n:]*:[ \t]*(#[0-9a-fA-F]{3,8})[ \t]*(?=[\r\n]|\Z)")
"""A line whose value is such a colour."""


def with_colours(
    source: str, entries: list[Entry], offset: int = 0
) -> tuple[list[Entry], list[tuple[int, str]]]:
    """Return the entries with these colours as their values, and the repairs as (index, reason).

    Args:
        source: The text the entries were read from.
        entries: The entries.
        offset: Index of ``source`` in the text that the entries count from.
    """
    repairs: list[tuple[int, str]] = []
    result = []
    for entry in entries:
        found = None
        if entry.key == "color" and is_null(entry.node):
            found = HEX.match(source, entry.index - offset)
        if found:
            repairs.append((entry.index, f"color: {found[1]} is a comment in YAML; it must stand in quotes"))
        result.append(attrs.evolve(entry, node=Scalar(found[1], entry.index, '"')) if found else entry)
    return result, repairs
