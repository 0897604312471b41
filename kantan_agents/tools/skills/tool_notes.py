"""Warns about unclear ``allowed-tools``, which allow nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kantan_agents.subagent_files.frontmatter.keys import field_of
from kantan_agents.subagent_files.grants import grants_for
from kantan_agents.subagent_files.problems import Problem
from kantan_agents.subagent_files.tool_lists import ToolFilter

_KEYS: Final = {"tools": "allowed-tools", "disallowedTools": "disallowed-tools"}


def notes_on_tools(
    allowed: ToolFilter, disallowed: tuple[str, ...], text: str, path: Path | None
) -> Iterator[Problem]:
    """Warn about entries that were not translated exactly; ``text`` is the content of ``path``."""
    for remark in grants_for(allowed, disallowed).remarks:
        field = "tools" if remark.startswith("tools:") else "disallowed_tools"
        yield Problem(path, _line_of(field, text), in_words_of_skills(remark), "warning")


def in_words_of_skills(message: str) -> str:
    """Use the key of skills and commands."""
    key, colon, rest = message.partition(":")
    return f"{_KEYS.get(key, key)}{colon}{rest}"


def _line_of(field: str, text: str) -> int:
    for number, line in enumerate(text.splitlines(), start=1):
        key, colon, _ = line.partition(":")
        if colon and field_of(key.strip().strip("\"'")) == field:
            return number
    return 1
