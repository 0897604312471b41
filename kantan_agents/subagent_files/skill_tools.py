"""The names of the tools for skills, and the mark of those that belong to one agent file."""

from __future__ import annotations

from typing import Any, Final

SKILL_TOOLS: Final = ("Skill", "ReadSkillFile", "FindSkills")
"""The names of the tools for skills, which no skill's limit refuses."""

_OF_FILE: Final = "_kantan_of_agent_file"


def mark_of_file(tool: Any) -> None:
    """Mark a tool as one for the skills of an agent file, which its subagents do not inherit."""
    setattr(tool, _OF_FILE, True)


def is_of_file(tool: Any) -> bool:
    """Return whether a tool is for the skills of an agent file."""
    return getattr(tool, _OF_FILE, False) is True
