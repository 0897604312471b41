"""Errors and warnings about subagent files."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import attrs

from kantan_agents.errors import (
    AgentFileError,
    CommandFileError,
    InvalidDefinitionError,
    InvalidSkillError,
    SkillFileError,
)

FileError = AgentFileError | InvalidDefinitionError | SkillFileError | InvalidSkillError | CommandFileError


@attrs.frozen
class Problem:
    """An error or warning about a subagent file.

    ``str(problem)`` is ``path:line: message``, which editors and CI systems turn into a link.

    Attributes:
        path: The file; None if the source is not a file.
        line: The line in the file, from 1.
        message: The mistake, in plain words.
        severity: ``"error"`` if the file could not be loaded, else ``"warning"``.
        code: ``"E30"`` or ``"E31"`` for errors.
        is_repair: Whether this line is invalid and was repaired while the file was read.
    """

    path: Path | None
    line: int
    message: str
    severity: Literal["error", "warning"]
    code: str | None = None
    is_repair: bool = False

    def __str__(self) -> str:
        return f"{self.path or '<text>'}:{self.line}: {self.message}"


def unreadable(path: str, message: str, code: str = AgentFileError.code) -> Problem:
    """Return the problem of an unreadable file or directory."""
    return Problem(Path(path), 1, message, "error", code)


def no_agent(path: str) -> Problem:
    """Return the remark on Markdown without frontmatter."""
    return Problem(Path(path), 1, "is not an agent: the file has no frontmatter", "warning")


def problems_of(path: str, error: FileError) -> tuple[Problem, ...]:
    """Return one problem for each mistake in ``error``."""
    messages = (error.reason,) if isinstance(error, AgentFileError | SkillFileError) else error.problems
    return tuple(Problem(Path(path), error.line, message, "error", error.code) for message in messages)
