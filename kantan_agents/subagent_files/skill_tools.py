"""The tools for skills."""

from __future__ import annotations

from typing import Any, Final

SKILL_TOOLS: Final = ("Skill", "ReadSkillFile", "FindSkills")
"""No skill's limit denies them."""

_OF_FILE: Final = "_kantan_of_agent_file"


def mark_of_file(tool: Any) -> None:
    """Mark a tool as one for the skills of an agent file; subagents do not inherit it."""
    setattr(tool, _OF_FILE, True)


def is_of_file(tool: Any) -> bool:
    """Return whether `mark_of_file` has marked a tool."""
    return getattr(tool, _OF_FILE, False) is True
