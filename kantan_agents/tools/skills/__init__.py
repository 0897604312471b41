"""What a project's files tell an agent: skills, slash commands in Markdown, and project instructions."""

from kantan_agents.tools.skills.catalog import CommandCatalog, Shadowed, SkillCatalog
from kantan_agents.tools.skills.command_file import CommandFile
from kantan_agents.tools.skills.loader import CommandLoader, SkillLoader
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
