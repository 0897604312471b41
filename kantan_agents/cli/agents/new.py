"""``kantan-agents agents new``: a new agent file, where agents are looked for."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable
from pathlib import Path

import typer

from kantan_agents.cli.agents.problems import path_text
from kantan_agents.cli.terminal.inputs import text_or_file
from kantan_agents.definitions import AgentDefinition, AgentLoader, ToolFilter, grants_of
from kantan_agents.definitions.frontmatter.writing import quote
from kantan_agents.definitions.loading.directories import BaseDirectories, given_directories
from kantan_agents.definitions.problems import problems_of
from kantan_agents.errors import (
    AgentFileError,
    AgentNotFoundError,
    FileArgumentError,
    InvalidDefinitionError,
    InvalidOptionError,
)

# Four bytes for each letter at the most, and no file system takes more than 255.
_LONGEST_SLUG = 60


def new_agent(
    name: str,
    *,
    description: str,
    tools: str | None,
    model: str | None,
    prompt: str | None,
    directory: Path,
) -> None:
    """Write an agent file into ``directory`` and print its path.

    Raises:
        InvalidDefinitionError: E31, name or description say nothing, or a text is no text.
        InvalidOptionError: E75, no file can be named after the agent, the tools are not clear, or the
            prompt is empty.
        FileArgumentError: E79, the file or an agent of this name is there already, or it cannot be written.
    """
    told = f"You are {name}. {description}" if prompt is None else text_or_file(prompt)
    if not told.strip():
        raise InvalidOptionError(option="--prompt", reason="must not be empty")
    definition = AgentDefinition(
        name=name,
        description=description,
        system_prompt=told if told.endswith("\n") else f"{told}\n",
        tools=_tools(tools),
        model=model,
    )
    path = directory / f"{slug_of(definition.name)}.md"
    _check_name(definition.name, path, directory)
    _write(path, definition.dump())
    typer.echo(path_text(path))


def agents_directory(directory: Path | None, *, user: bool) -> Path:
    """Return where a new agent belongs: the project, the user or the ``directory`` that was named.

    Raises:
        InvalidOptionError: E75, it cannot be two of them, or the user has no home.
    """
    if directory is not None:
        if user:
            raise InvalidOptionError(option="--user", reason="cannot stand beside --dir")
        return directory
    if user:
        house = os.environ.get("CLAUDE_CONFIG_DIR") or "~/.claude"
        return given_directories([f"{house}/agents"], BaseDirectories()).directories[0].path
    # The outermost of the project's directories, and of the two there the one that Claude Code reads too.
    of_the_project = [place for place in AgentLoader().directories if place.scope == "project"]
    return of_the_project[-1].path


def slug_of(name: str) -> str:
    """Return the letters and digits of a name, words joined by dashes; nothing of it can lead elsewhere.

    Raises:
        InvalidOptionError: E75, nothing is left.
    """
    folded = unicodedata.normalize("NFKC", name).casefold()
    words = "".join(char if char.isalnum() else " " for char in unicodedata.normalize("NFC", folded)).split()
    slug = "-".join(words)[:_LONGEST_SLUG].strip("-")
    if not slug:
        raise InvalidOptionError(option="NAME", reason="must hold a letter or a digit, to name a file after")
    return slug


def _tools(text: str | None) -> ToolFilter:
    """Return what a file would say with this text behind ``tools:``.

    Raises:
        InvalidOptionError: E75, it is not clear what is meant, or not everything would be granted.
    """
    if text is None:
        return "*"
    # In quotes, so that whatever the text is, it is the value of this one key.
    asked = f"---\nname: x\ndescription: x\ntools: {quote(text)}\n---\n"
    try:
        definition = AgentDefinition.loads(asked)
    except (AgentFileError, InvalidDefinitionError) as error:
        raise _bad_tools(problem.message for problem in problems_of("--tools", error)) from error
    remarks = grants_of(definition).remarks
    if remarks:
        raise _bad_tools(remarks)
    return definition.tools


def _bad_tools(reasons: Iterable[str]) -> InvalidOptionError:
    told = "; ".join(reason.removeprefix("tools: ") for reason in reasons)
    return InvalidOptionError(option="--tools", reason=told)


def _check_name(name: str, path: Path, directory: Path) -> None:
    try:
        known = AgentLoader([directory]).get_agent_now(name)
    except AgentNotFoundError:
        return
    raise FileArgumentError(path=str(path), reason=f"there is an agent {known.name} already, in {known.path}")


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            try:
                file.write(text.encode())
                file.flush()
            except OSError:
                path.unlink()
                raise
    except OSError as error:
        raise FileArgumentError(path=str(path), reason=error.strerror or str(error)) from error
