"""What is said of agent files and directories that cannot be read, or not be used."""

from __future__ import annotations

from pathlib import Path

from kantan_agents.definitions.definition import AgentDefinition
from kantan_agents.definitions.problems import Problem
from kantan_agents.errors import AgentFileError, InvalidDefinitionError


def file_problem(path: str, message: str) -> Problem:
    """Return the problem of a file or directory that the system does not let us read."""
    return Problem(Path(path), 1, message, "error", AgentFileError.code)


def problems_of(path: str, error: AgentFileError | InvalidDefinitionError) -> tuple[Problem, ...]:
    """Return what is wrong with a file, each mistake by itself."""
    messages = (error.reason,) if isinstance(error, AgentFileError) else error.problems
    return tuple(Problem(Path(path), error.line, message, "error", error.code) for message in messages)


def warnings_of(definition: AgentDefinition) -> tuple[Problem, ...]:
    """Return what a person should know of a file that was read, by line: its notes, and a missing prompt."""
    if definition.path is None or definition.system_prompt.strip():
        return definition.notes
    silent = Problem(definition.path, 1, "has no prompt: it cannot be run", "warning")
    return (silent, *definition.notes)
