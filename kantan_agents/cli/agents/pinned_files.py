"""Pins the files that define agents' permissions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from kantan_agents.agent import Agent
from kantan_agents.errors import KantanAgentsError
from kantan_agents.subagent_files import AgentDefinition, AgentLoader
from kantan_agents.subagent_files.frontmatter.document import MAX_BYTES, read_regular_file
from kantan_agents.tools.skills import CommandLoader, SkillLoader

if TYPE_CHECKING:
    from kantan_agents.cli.agents.instruction_files import InstructionFile, InstructionFiles
    from kantan_agents.subagent_files.loading.catalog import FileCatalog
    from kantan_agents.subagent_files.loading.loader import FileLoader
    from kantan_agents.tools.mcp.configuration.configuration import Configuration


@attrs.frozen
class ChangedFiles:
    """Content of changed files, and the changes as ``lines``."""

    catalogs: tuple[FileCatalog[Any], ...] = attrs.field(eq=False)
    own: AgentDefinition | None = attrs.field(eq=False)
    lines: tuple[str, ...]
    _held: tuple[Any, ...] = attrs.field(repr=False)  # equal for files with equal content
    instructions: tuple[InstructionFile, ...] = attrs.field(default=(), eq=False)
    texts: tuple[str, ...] = ()


class PinnedFiles:
    """A conversation's files, whose changes are only reported."""

    def __init__(
        self,
        agents: Iterable[AgentLoader] = (),
        skills: Iterable[SkillLoader] = (),
        own: AgentDefinition | None = None,
        instruction_files: InstructionFiles | None = None,
        commands: Iterable[CommandLoader] = (),
    ) -> None:
        self.own = own
        self.instruction_files = instruction_files
        self.skills = tuple(skills)
        self._loaders: tuple[FileLoader[Any, Any], ...] = (*agents, *self.skills, *commands)
        self._configuration: Configuration | None = None
        self._configured: dict[Path, bytes | None] = {}
        for loader in self._loaders:
            loader.pin()

    @property
    def directories(self) -> tuple[Path, ...]:
        """The searched directories; they need not exist."""
        return tuple(found.path for loader in self._loaders for found in loader.directories)

    def configuration(self) -> Configuration:
        """Return the MCP configuration of the first call."""
        if self._configuration is None:
            from kantan_agents.tools.mcp.configuration.configuration import read_configuration

            self._configuration = read_configuration()
            self._configured = {path: _content(path) for path in self._configuration.paths}
        return self._configuration

    def changed(self) -> ChangedFiles | None:
        """Return the changes, or None. Blocks."""
        catalogs = tuple(loader.read_files() for loader in self._loaders)
        own = self._own_now()
        files = self.instruction_files
        instructions_before, instructions = ((), ()) if files is None else (files.files, files.read())
        pairs: list[tuple[dict[str, Any], dict[str, Any]]] = [
            *(
                (_files(loader.load_now()), _files(now))
                for loader, now in zip(self._loaders, catalogs, strict=True)
            ),
            (_files([self.own] if self.own else ()), _files([own] if own else ())),
            (_files(instructions_before), _files(instructions)),
        ]
        found = [line for before, after in pairs for line in _differences(before, after)]
        configured = {path: _content(path) for path in self._configured}
        found += [
            f"{_shown(path)} has changed: its servers are started anew with the next chat"
            for path, content in configured.items()
            if content != self._configured[path]
        ]
        if not found:
            return None
        held = (*(tuple(after.items()) for _, after in pairs), tuple(configured.items()))
        texts = () if files is None else tuple(files.changes(instructions))
        return ChangedFiles(catalogs, own, tuple(dict.fromkeys(found)), held, instructions, texts)

    def take(self, changed: ChangedFiles) -> None:
        """Use exactly these changes, whatever the files contain now."""
        for loader, catalog in zip(self._loaders, changed.catalogs, strict=True):
            loader.pin(catalog)
        self.own = changed.own
        if self.instruction_files is not None:
            self.instruction_files.take(changed.instructions)

    def _own_now(self) -> AgentDefinition | None:
        if self.own is None or self.own.path is None:
            return self.own
        try:
            return AgentDefinition.load(self.own.path)
        except KantanAgentsError:
            return self.own  # used in its earlier version


def pinned_loaders(agent: Agent[Any]) -> PinnedFiles:
    """Return the pinned files of an agent made in Python."""
    loaders = list(dict.fromkeys(filter(None, _loaders_of(agent, []))))
    return PinnedFiles(
        [one for one in loaders if isinstance(one, AgentLoader)],
        [one for one in loaders if isinstance(one, SkillLoader)],
        commands=[one for one in loaders if isinstance(one, CommandLoader)],
    )


def _loaders_of(agent: Agent[Any], seen: list[Agent[Any]]) -> Iterator[Any]:
    seen.append(agent)
    for tool in agent.unguarded_tools:
        yield getattr(getattr(getattr(tool, "on_invoke_tool", None), "__self__", None), "loader", None)
    for middleware in agent.layers.middleware:
        yield getattr(middleware, "files", None)
    for target in agent.handoffs:
        if isinstance(target, Agent) and not any(target is one for one in seen):
            yield from _loaders_of(target, seen)


def _files(entries: Iterable[Any]) -> dict[str, Any]:
    return {str(entry.path): entry for entry in entries if entry.path is not None}


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for path in sorted({*before, *after}):
        old, new = before.get(path), after.get(path)
        if old == new:
            continue
        if new is None:
            yield f"{_shown(path)} is gone, or cannot be used any more"
        elif old is None:
            yield f"{_shown(path)} is new: {new.name}, {_tools(new)}"
        elif _tools(old) != _tools(new):
            yield f"{_shown(path)} has changed: {_tools(old)} before, {_tools(new)} now"
        else:
            yield f"{_shown(path)} has changed"


def _tools(entry: Any) -> str:
    if hasattr(entry, "extent"):
        return str(entry.extent)
    allowed = entry.tools if isinstance(entry, AgentDefinition) else entry.allowed_tools
    denied = entry.disallowed_tools
    text = "tools " + ("all" if allowed == "*" else ", ".join(allowed) or "none")
    return f"{text} without {', '.join(denied)}" if denied else text


def _shown(path: str | Path) -> str:
    try:
        return os.path.relpath(path) if Path(path).is_relative_to(Path.cwd()) else str(path)
    except OSError:
        return str(path)


def _content(path: Path) -> bytes | None:
    try:
        return read_regular_file(str(path), MAX_BYTES)[0]
    except (OSError, ValueError):
        return None
