"""The tools for skills as the model sees them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from kantan_agents.errors import ToolInputError
from kantan_agents.tool_rules import parse_arguments
from kantan_agents.tools.skills.limits import choice_of, head_line
from kantan_agents.tools.skills.skill import Skill

NAME: Final = "name"
SKILL: Final = "skill"
MAX_DESCRIPTIONS: Final = 16_000
"""With more characters of descriptions, the skills are searched instead of listed."""

MAX_TEXT: Final = 48_000
"""The most characters of instructions or of a file in one answer."""

_MAX_FILES: Final = 100
_MAX_LINE: Final = 300


def _schema(**properties: tuple[str, str]) -> dict[str, Any]:
    described = {name: {"type": kind, "description": text} for name, (kind, text) in properties.items()}
    return {
        "type": "object",
        "properties": described,
        "required": list(described),
        "additionalProperties": False,
    }


SKILL_PARAMETERS: Final = _schema(name=("string", "Name of the skill."))
FILE_PARAMETERS: Final = _schema(
    skill=("string", "Name of the skill, which must have been read before."),
    path=("string", "Path of the file in the folder of the skill, such as reference/forms.md."),
    offset=("integer", "Character to begin at; 0 for the beginning."),
)
FIND_PARAMETERS: Final = _schema(query=("string", "What you want to do, in a few words."))

READ_DESCRIPTION: Final = (
    "Read a text file that belongs to a skill, such as one that its instructions mention. Nothing outside of "
    "the skill's folder can be read."
)
FIND_DESCRIPTION: Final = (
    "Find more skills. You see only some of the skills there are: describe what you want to do, and the "
    "skills that fit best are listed."
)
_INTRODUCTION: Final = (
    "Read the instructions of a skill. If a skill fits the task, read it before you begin, and follow it. "
    "A skill may limit the tools that you can use afterwards."
)


def skills_text(skills: Iterable[Skill]) -> str:
    """One line for each skill."""
    return "\n".join(f"- {skill.name}: {' '.join(skill.description.split())}" for skill in skills)


def all_skills_description(skills: Sequence[Skill]) -> str:
    """Describe ``Skill`` with all skills."""
    return f"{_INTRODUCTION}\n\nSkills:\n{skills_text(skills)}"


def some_skills_description(found: Sequence[Skill], total: int) -> str:
    """Describe it with matching skills."""
    others = f"There are {total} skills. Find others with {'FindSkills'}."
    if not found:
        return f"{_INTRODUCTION}\n\n{others}"
    return f"{_INTRODUCTION}\n\nSkills that may fit the request:\n{skills_text(found)}\n\n{others}"


def found_text(found: Sequence[Skill]) -> str:
    """The answer of ``FindSkills``."""
    if not found:
        return "No skill matches that. Try other words, for instance words that its name may contain."
    lines = (f"- {skill.name}: {_line(skill.description)}" for skill in found)
    return "\n".join(("These can be read with Skill:", *lines))


def skill_text(skill: Skill, files: tuple[list[str], bool]) -> str:
    """The answer of ``Skill``."""
    names, has_more = files
    lines = [head_line(choice_of(skill))]
    if skill.limits_tools:
        lines.append("From now on, tools that this skill does not allow are refused.")
    if names:
        more = ", and more" if has_more else ""
        lines.append(f"Files that ReadSkillFile can read: {', '.join(names)}{more}")
    return "\n".join((*lines, "", part_of(skill.body, 0, "SKILL.md")))


def part_of(text: str, offset: int, path: str) -> str:
    """Return a part that fits, and how to read further."""
    part = text[offset : offset + MAX_TEXT]
    end = offset + len(part)
    if end >= len(text):
        return part
    return (
        f"{part}\n\n[{len(text) - end} of {len(text)} characters are left: "
        f"ReadSkillFile with path {path} and offset {end if path != 'SKILL.md' else 0}]"
    )


def read_text(tool: str, arguments: str, *names: str) -> tuple[str, ...]:
    """E10 if a string is missing or blank."""
    given = parse_arguments(tool, arguments)
    texts: list[str] = []
    for name in names:
        text = given.get(name)
        if not isinstance(text, str) or not text.strip():
            raise ToolInputError(tool_name=tool, reason=f"{name} must be a text that is not empty")
        texts.append(text)
    return tuple(texts)


def read_offset(tool: str, arguments: str) -> int:
    """E10 unless it is a whole number from 0."""
    offset = parse_arguments(tool, arguments).get("offset")
    if offset is None:
        return 0
    if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
        raise ToolInputError(tool_name=tool, reason="offset must be a whole number from 0")
    return offset


def _line(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _MAX_LINE else f"{words[: _MAX_LINE - 3]}..."


MAX_FILES: Final = _MAX_FILES
