"""What a project's files tell an agent: skills, slash commands in Markdown, and project instructions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kantan_agents.support.package_names import lazy_names

if TYPE_CHECKING:
    from kantan_agents.subagent_files.loading.catalog import Shadowed
    from kantan_agents.tools.skills.command_file import CommandFile
    from kantan_agents.tools.skills.loader import CommandCatalog, CommandLoader, SkillCatalog, SkillLoader
    from kantan_agents.tools.skills.project import project_instructions
    from kantan_agents.tools.skills.skill import Skill
    from kantan_agents.tools.skills.tools import skill_tools

__all__ = [
    "CommandCatalog",
    "CommandFile",
    "CommandLoader",
    "Shadowed",
    "Skill",
    "SkillCatalog",
    "SkillLoader",
    "project_instructions",
    "skill_tools",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kantan_agents.subagent_files.loading.catalog": ("Shadowed",),
        "kantan_agents.tools.skills.command_file": ("CommandFile",),
        "kantan_agents.tools.skills.loader": (
            "CommandCatalog",
            "CommandLoader",
            "SkillCatalog",
            "SkillLoader",
        ),
        "kantan_agents.tools.skills.project": ("project_instructions",),
        "kantan_agents.tools.skills.skill": ("Skill",),
        "kantan_agents.tools.skills.tools": ("skill_tools",),
    },
)
