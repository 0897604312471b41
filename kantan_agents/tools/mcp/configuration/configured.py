"""``configured_servers``: the MCP servers of configuration files, for agents."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType

import anyio
import attrs
from agents.mcp import MCPServer
from typing_extensions import Self

from kantan_agents.errors import (
    InvalidMCPConfigurationError,
    InvalidOptionError,
    MCPNotTrustedError,
    MCPVariablesError,
    UnknownMCPServerError,
)
from kantan_agents.subagent_files import AgentDefinition
from kantan_agents.support.arguments import checked_bool, checked_list, checked_path
from kantan_agents.support.log import get_logger
from kantan_agents.support.nearest import nearest
from kantan_agents.tools.mcp.configuration.agent_file import wanted_servers
from kantan_agents.tools.mcp.configuration.configuration import Configuration, read_configuration
from kantan_agents.tools.mcp.configuration.entry import ServerEntry
from kantan_agents.tools.mcp.configuration.servers import make_server
from kantan_agents.tools.mcp.configuration.trust import TrustRecord
from kantan_agents.tools.mcp.configuration.variables import expand, missing_variables

_log = get_logger("kantan_agents.mcp")


def configured_servers(
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None = None,
    *,
    names: Iterable[str] | None = None,
    allow_env: Iterable[str] = (),
    trusted: bool = False,
) -> ConfiguredServers:
    """Return the MCP servers that configuration files describe, to be used as ``mcp_servers`` of agents.

        async with configured_servers(".mcp.json", allow_env=["GITHUB_TOKEN"]) as servers:
            agent = Agent("helper", "Help.", mcp_servers=servers)
            await agent.run_async("Which issues are open?")

    Nothing is started here: the first run that needs a server connects it, and all agents and runs share the
    connection. The files are read with blocking calls, so call it when your program starts.

    Args:
        path: A file like ``.mcp.json`` or ``kantan-agents.toml``, or several, in order of priority. None
            searches like the command line: the user's own configuration, then the working directory up to the
            root of the repository.
        names: The servers that may be used. None means all that are not disabled; it omits, with a warning,
            servers with mistakes or with variables that are not set or not allowed.
        allow_env: Names of the environment variables that references such as ``${GITHUB_TOKEN}`` may read, in
            addition to ``[mcp] allow_env`` of the user's ``kantan-agents.toml``.
        trusted: Whether you vouch for the files yourself. Otherwise a file outside the user's configuration
            directory must have been trusted with ``kantan-agents mcp trust``.

    Raises:
        MCPFileError: E180, a file cannot be read.
        InvalidMCPConfigurationError: E181, a file has mistakes outside its servers, or a server in ``names``
            has; the error lists all of them.
        UnknownMCPServerError: E184, no server has one of the ``names``.
        InvalidOptionError: E75, an argument has a wrong type.
    """
    is_one = isinstance(path, str | os.PathLike)
    given = None if path is None else [path] if is_one else checked_list("path", path)
    paths = None if given is None else [Path(checked_path("path", one)).expanduser() for one in given]
    allowed = frozenset(_texts("allow_env", allow_env))
    chosen = None if names is None else _texts("names", names)
    configuration = read_configuration(paths)
    for file, remark in configuration.remarks:
        _log.warning(f"MCP configuration {file}: {remark}")
    return ConfiguredServers(
        configuration, chosen, allow_env=allowed, trusted=checked_bool("trusted", trusted)
    )


class ConfiguredServers:
    """Configured MCP servers; ``configured_servers`` returns them.

    Iteration yields an SDK server object for each, always the same object. Taking a server checks that its
    file is trusted and its variables are set and allowed. Without ``names``, iteration omits a server whose
    variables are missing, with a warning.

    Leaving ``async with`` ends the connections of all servers. Without it, a connection ends with its event
    loop: for ``agent.run``, when the process ends.

    Attributes:
        configuration: The content of the files.
    """

    def __init__(
        self,
        configuration: Configuration,
        names: Iterable[str] | None = None,
        *,
        allow_env: frozenset[str] = frozenset(),
        trusted: bool = False,
        record: TrustRecord | None = None,
        approval: bool = False,
    ) -> None:
        self.configuration = configuration
        self._allowed = configuration.allow_env | allow_env
        self._trusted = trusted
        self._approval = approval
        self._record = TrustRecord.of_user() if record is None else record
        self._lock = threading.Lock()
        self._made: list[tuple[ServerEntry, MCPServer]] = []
        self._takes_all = names is None
        self._usable = {
            entry.name: entry for entry in configuration.entries if not (entry.is_disabled or entry.mistakes)
        }
        if names is not None:
            self._usable = {name: self._find(name) for name in names}
        self._entries = tuple(self._usable.values())
        # Now, and not in an event loop: this reads files.
        self._known_trusted = {
            entry.source.path: entry.source.digest
            for entry in self._entries
            if self._record.distrust(entry.source) is None
        }

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the servers."""
        return tuple(entry.name for entry in self._entries)

    @property
    def entries(self) -> tuple[ServerEntry, ...]:
        """The configuration of each server."""
        return self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[MCPServer]:
        return iter([self._server(entry) for entry in self._entries if not self._is_left_out(entry)])

    def __getitem__(self, name: str) -> MCPServer:
        """Return the server named ``name``.

        Raises:
            UnknownMCPServerError: E184, no such server exists, or it is disabled.
            InvalidMCPConfigurationError: E181, it has mistakes.
            MCPNotTrustedError: E183, its file is not trusted.
            MCPVariablesError: E182, a variable that it needs is not set or not allowed.
        """
        return self._server(self._find(name))

    def for_definition(self, definition: AgentDefinition, *, known_only: bool = False) -> list[MCPServer]:
        """Return the servers in ``mcpServers`` of a subagent file.

        Args:
            definition: The definition. A server that the file itself configures must be trusted like a server
                of a configuration file.
            known_only: Whether to omit a name that no configured server has.

        Raises:
            InvalidMCPConfigurationError: E181, ``mcpServers`` has mistakes, or gives a server the name of
                another one.
            UnknownMCPServerError: E184, no server has one of the names.
            MCPNotTrustedError, MCPVariablesError: E183, E182, as for a server by its name.
        """
        return [self._server(entry) for entry in self.entries_for(definition, known_only=known_only)]

    def entries_for(self, definition: AgentDefinition, *, known_only: bool = False) -> list[ServerEntry]:
        """Return the configuration of a subagent file's servers; starts and checks nothing.

        Args:
            definition: As for ``for_definition``.
            known_only: As for ``for_definition``.

        Raises:
            InvalidMCPConfigurationError, UnknownMCPServerError: E181, E184, as for ``for_definition``.
        """
        wanted = wanted_servers(definition)
        own = {entry.name: entry for entry in wanted.entries}
        problems = [
            f"mcpServers.{name}: {known.source.path} has another server of this name"
            for name, entry in own.items()
            # Otherwise rules for one would hold for the other.
            if (known := self.configuration.find(name)) is not None and not _is_same(entry, known)
        ]
        if problems:
            raise InvalidMCPConfigurationError(path=str(definition.path), problems=problems)
        names = [name for name in wanted.names if not known_only or name in own or name in self._usable]
        return [own[name] if name in own else self._find(name) for name in names]

    async def aclose(self) -> None:
        """End the connections of all servers. A later run connects them again."""
        async with anyio.create_task_group() as tasks:
            for _, server in tuple(self._made):
                tasks.start_soon(server.cleanup)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Even if the block was canceled: otherwise the processes would stay alive.
        with anyio.CancelScope(shield=True):
            await self.aclose()

    def _find(self, name: str) -> ServerEntry:
        usable = self._usable.get(name)
        if usable is not None:
            return usable
        entry = self.configuration.find(name)
        if entry is not None and entry.mistakes:
            raise InvalidMCPConfigurationError(path=str(entry.source.path), problems=entry.mistakes)
        near = nearest(name, self._usable)
        hint = f"; the nearest name is {near!r}" if near else ""
        if entry is not None and entry.is_disabled:
            hint = f": {entry.source.path} says that it is disabled"
        raise UnknownMCPServerError(server=name, known=tuple(self._usable), hint=hint)

    def _server(self, entry: ServerEntry) -> MCPServer:
        self._check(entry)
        with self._lock:
            # Equal servers of several subagent files are one.
            for known, server in self._made:
                if known == entry:
                    return server
            made = make_server(entry, expand(entry, os.environ), approval=self._approval)
            self._made.append((entry, made))
            return made

    def _is_left_out(self, entry: ServerEntry) -> bool:
        missing = missing_variables(entry, os.environ, self._allowed) if self._takes_all else ()
        if missing:
            error = MCPVariablesError(server=entry.name, path=str(entry.source.path), problems=missing)
            _log.warning(f"{error}; the others are used without it")
        return bool(missing)

    def _check(self, entry: ServerEntry) -> None:
        is_trusted = self._trusted or self._known_trusted.get(entry.source.path) == entry.source.digest
        reason = None if is_trusted else self._record.distrust(entry.source)
        if reason is not None:
            # A definition that was read from a string has no file that could be trusted.
            hint = None if entry.source.path.is_absolute() else "Pass trusted=True if the text is yours"
            raise MCPNotTrustedError(server=entry.name, path=str(entry.source.path), reason=reason, hint=hint)
        missing = missing_variables(entry, os.environ, self._allowed)
        if missing:
            raise MCPVariablesError(server=entry.name, path=str(entry.source.path), problems=missing)

    def __repr__(self) -> str:
        return f"ConfiguredServers({', '.join(map(repr, self.names))})"


def _is_same(one: ServerEntry, other: ServerEntry) -> bool:
    return attrs.evolve(one, source=other.source) == other


def _texts(option: str, values: Iterable[str]) -> list[str]:
    texts = checked_list(option, values)
    wrong = next((text for text in texts if not isinstance(text, str)), None)
    if wrong is not None:
        raise InvalidOptionError(option=option, reason=f"must be a list of texts, not {wrong!r}")
    return texts
