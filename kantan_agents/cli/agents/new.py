"""``agents new``: writes a subagent file."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable
from pathlib import Path

import typer

from kantan_agents.cli.agents.below import boundary_of, place_below
from kantan_agents.cli.agents.problems import path_text
from kantan_agents.cli.agents.tools_here import ToolsHere
from kantan_agents.cli.terminal.inputs import text_or_file
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.errors import (
    AgentFileError,
    AgentNotFoundError,
    FileArgumentError,
    InvalidDefinitionError,
    InvalidOptionError,
)
from kantan_agents.subagent_files import AgentDefinition, AgentLoader, ToolFilter, grants_of
from kantan_agents.subagent_files.frontmatter.writing import quote
from kantan_agents.subagent_files.loading.directories import BaseDirectories, given_directories
from kantan_agents.subagent_files.problems import problems_of

# A character has at most four bytes in UTF-8, and file systems allow names of 255 bytes.
_MAX_SLUG = 60
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_MODE = 0o666


def new_agent(
    name: str,
    *,
    description: str,
    tools: str | None,
    model: str | None,
    prompt: str | None,
    directory: Path,
) -> None:
    """Write a subagent file and print its path."""
    text = f"You are {name}. {description}" if prompt is None else text_or_file("--prompt", prompt)
    if not text.strip():
        raise InvalidOptionError(option="--prompt", reason="must not be empty")
    definition = AgentDefinition(
        name=name,
        description=description,
        system_prompt=text if text.endswith("\n") else f"{text}\n",
        tools=_tools(tools),
        model=model,
    )
    path = directory / f"{slug_of(definition.name)}.md"
    _check_name(definition.name, path, directory)
    _write(path, definition.dump())
    typer.echo(path_text(path))
    unknown = ToolsHere().remark_on(definition)
    if unknown is not None:
        typer.echo(f"warning: {one_line(unknown.message)}", err=True)


def agents_directory(directory: Path | None, *, user: bool) -> Path:
    """Return the directory for a new agent."""
    if directory is not None:
        if user:
            raise InvalidOptionError(option="--user", reason="cannot be combined with --dir")
        return directory
    if user:
        base = os.environ.get("CLAUDE_CONFIG_DIR") or "~/.claude"
        return given_directories([f"{base}/agents"], BaseDirectories()).directories[0].path
    # The last one is `.claude/agents` in the outermost directory, which Claude Code reads too.
    project = [directory for directory in AgentLoader().directories if directory.scope == "project"]
    return project[-1].path


def slug_of(name: str) -> str:
    """Return a name that is safe as a file name."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    words = "".join(char if char.isalnum() else " " for char in unicodedata.normalize("NFC", folded)).split()
    slug = "-".join(words)[:_MAX_SLUG].strip("-")
    if not slug:
        reason = "must contain a letter or a digit for the file name"
        raise InvalidOptionError(option="NAME", reason=reason)
    return slug


def _tools(text: str | None) -> ToolFilter:
    if text is None:
        return "*"
    # Quoted, so that any string is the value of this one key.
    file = f"---\nname: x\ndescription: x\ntools: {quote(text)}\n---\n"
    try:
        definition = AgentDefinition.loads(file)
    except (AgentFileError, InvalidDefinitionError) as error:
        raise _bad_tools(problem.message for problem in problems_of("--tools", error)) from error
    remarks = grants_of(definition).remarks
    if remarks:
        raise _bad_tools(remarks)
    return definition.tools


def _bad_tools(reasons: Iterable[str]) -> InvalidOptionError:
    reason = "; ".join(reason.removeprefix("tools: ") for reason in reasons)
    return InvalidOptionError(option="--tools", reason=reason)


def _check_name(name: str, path: Path, directory: Path) -> None:
    try:
        known = AgentLoader([directory]).get_agent_now(name)
    except AgentNotFoundError:
        return
    raise FileArgumentError(path=str(path), reason=f"there is an agent {known.name} already, in {known.path}")


def _write(path: Path, text: str) -> None:
    try:
        with place_below(boundary_of(path.parent), path, create=True) as place:
            descriptor = os.open(place.name, _FLAGS, _MODE, dir_fd=place.directory)
            try:
                with open(descriptor, "wb") as file:  # noqa: PTH123 - the flags
                    file.write(text.encode())
                    file.flush()
                    os.fsync(descriptor)
            except OSError:
                os.unlink(place.name, dir_fd=place.directory)
                raise
    except OSError as error:
        raise FileArgumentError(path=str(path), reason=error.strerror or str(error)) from error
