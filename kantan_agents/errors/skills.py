"""E187 to E192: skills, commands in Markdown files, and project instructions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kantan_agents.errors.root import KantanAgentsError

_MOST_LISTED = 50


def _where(path: Any, line: int) -> str:
    return f"line {line}" if path is None else f"{path}, line {line}"


class SkillFileError(KantanAgentsError):
    """A ``SKILL.md`` cannot be read.

    Attributes:
        path: The file; None for a text without one.
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

    Attributes:
        path: The file; None for a skill without one.
        line: The line of the first mistake, from 1 on.
        problems: Every mistake; each begins with its field.
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
    """No skill has this name, or the agent may not use it.

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
    """A file of a skill cannot be read: it is missing, outside of the skill's folder, or not a text.

    Attributes:
        skill: Name of the skill.
        path: The path as it was requested.
        reason: What is wrong.
    """

    code = "E190"
    template = "File of skill {skill} cannot be read: {path}: {reason}"
    skill: str
    path: str
    reason: str


class CommandFileError(KantanAgentsError):
    """A Markdown file with a slash command cannot be read, or is not a valid command.

    Attributes:
        path: The file; None for a text without one.
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
    """A file with project instructions exists and cannot be used.

    Attributes:
        path: The file.
        reason: What is wrong.
    """

    code = "E192"
    template = "Project instructions cannot be read: {path}: {reason}"
    path: str
    reason: str
