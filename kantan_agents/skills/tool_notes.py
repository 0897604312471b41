"""Warnings about entries of ``allowed-tools`` that cannot be understood, and so allow nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kantan_agents.definitions.frontmatter.keys import field_of
from kantan_agents.definitions.grants import grants_for
from kantan_agents.definitions.problems import Problem
from kantan_agents.definitions.tool_lists import ToolFilter


def notes_on_tools(
    allowed: ToolFilter, disallowed: tuple[str, ...], text: str, path: Path | None
) -> Iterator[Problem]:
    """Yield a warning for each entry of two tool lists that could not be translated exactly.

    Args:
        allowed: The tools that may be used.
        disallowed: The tools that may not be used.
        text: The text of the file, to find the line.
        path: The file.
    """
    for remark in grants_for(allowed, disallowed).remarks:
        key, _, message = remark.partition(": ")
        field = "tools" if key == "tools" else "disallowed_tools"
        shown = "allowed-tools" if key == "tools" else "disallowed-tools"
        yield Problem(path, _line_of(field, text), f"{shown}: {message}", "warning")


def _line_of(field: str, text: str) -> int:
    for number, line in enumerate(text.splitlines(), start=1):
        key, colon, _ = line.partition(":")
        if colon and field_of(key.strip().strip("\"'")) == field:
            return number
    return 1
