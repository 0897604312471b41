"""E187 to E192: skills, commands in Markdown files, and project instructions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kantan_agents.errors.root import KantanAgentsError

_MOST_LISTED = 50


def _where(path: Any, line: int) -> str:
    return f"line {line}" if path is None else f"{path}, line {line}"


class SkillFileError(KantanAgentsError):
    """A ``SKILL.md`` is missing, not a regular file, larger than 4 MiB, not UTF-8, or has no frontmatter.

    ``SkillLoader`` lists it in ``problems`` instead of raising.

    Fix: Correct the file at ``error.line``.

    Attributes:
        path: The file; None for a string.
        line: The line of the error, from 1 on.
        reason: What is wrong.
    """

    code = "E187"
    is_bad_input = True
    template = "Skill file cannot be read: {where}: {reason}"
    path: str | None
    line: int
    reason: str

    def __init__(self, *, path: Any = None, line: int = 1, reason: str, where: str | None = None) -> None:
        where = where or _where(path, line)
        super().__init__(path=None if path is None else str(path), line=line, reason=reason, where=where)


class InvalidSkillError(KantanAgentsError):
    """A ``SKILL.md`` or the arguments of ``Skill`` are not a valid skill.

    ``name`` or ``description`` is missing or too long, or the name differs from the folder's.

    Fix: Correct each of ``error.problems``.

    Attributes:
        path: The file; None for a skill without one.
        line: The line of the first mistake, from 1 on.
        problems: Every mistake; each starts with its field.
    """

    code = "E188"
    is_bad_input = True
    template = "Skill is not valid: {where}: {listed}"
    path: str | None
    line: int
    problems: Sequence[str]

    def __init__(
        self,
        *,
        problems: Sequence[str],
        path: Any = None,
        line: int = 1,
        where: str | None = None,
        listed: str | None = None,
    ) -> None:
        super().__init__(
            path=None if path is None else str(path),
            line=line,
            problems=tuple(problems),
            where=where or _where(path, line),
            listed=listed or "; ".join(problems),
        )


class SkillNotFoundError(KantanAgentsError):
    """No skill has this name, or the agent may not use it. If a model used it, the model gets this message.

    Fix: Use one of ``error.available``, or check the rules and the skills in the agent's file.

    Attributes:
        name: The requested name.
        available: Names of the available skills.
    """

    code = "E189"
    is_bad_input = True
    template = "Skill not found: {name} (available: {listed})"
    name: str
    available: Sequence[str]

    def __init__(self, *, name: str, available: Sequence[str], listed: str | None = None) -> None:
        if listed is None:
            more = len(available) - _MOST_LISTED
            rest = f" and {more} more" if more > 0 else ""
            listed = f"{', '.join(available[:_MOST_LISTED]) or 'none'}{rest}"
        super().__init__(name=name, available=tuple(available), listed=listed)


class SkillPathError(KantanAgentsError):
    """A file of a skill is missing, outside of its folder, a link, or binary. The model gets this message.

    Fix: Correct the path in the skill, or put the file into its folder.

    Attributes:
        skill: Name of the skill.
        path: The requested path.
        reason: What is wrong.
    """

    code = "E190"
    template = "File of skill {skill} cannot be read: {path}: {reason}"
    skill: str
    path: str
    reason: str


class CommandFileError(KantanAgentsError):
    """A Markdown file with a slash command cannot be read, is empty, or has a wrong name or frontmatter.

    ``CommandLoader`` lists it in ``problems`` instead of raising.

    Fix: Correct each of ``error.problems``.

    Attributes:
        path: The file; None for a string.
        line: The line of the first mistake, from 1 on.
        problems: Every mistake.
    """

    code = "E191"
    is_bad_input = True
    template = "Command file is not valid: {where}: {listed}"
    path: str | None
    line: int
    problems: Sequence[str]

    def __init__(
        self,
        *,
        problems: Sequence[str],
        path: Any = None,
        line: int = 1,
        where: str | None = None,
        listed: str | None = None,
    ) -> None:
        super().__init__(
            path=None if path is None else str(path),
            line=line,
            problems=tuple(problems),
            where=where or _where(path, line),
            listed=listed or "; ".join(problems),
        )


class ProjectInstructionsError(KantanAgentsError):
    """``AGENTS.md`` or ``CLAUDE.md`` is not UTF-8, larger than 4 MiB, or a link out of the repository.

    Commands omit it and print a line with the reason.

    Fix: Correct or remove the file, or pass other ``names``.

    Attributes:
        path: The file.
        reason: What is wrong.
    """

    code = "E192"
    template = "Project instructions cannot be read: {path}: {reason}"
    path: str
    reason: str
