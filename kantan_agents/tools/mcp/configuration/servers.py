"""Makes unconnected SDK server objects from entries."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from agents.mcp import MCPServer, MCPServerSse, MCPServerStdio, MCPServerStreamableHttp
from mcp.client.stdio import stdio_client

from kantan_agents.tools.mcp.configuration.entry import ServerEntry
from kantan_agents.tools.mcp.configuration.masking import Masking
from kantan_agents.tools.mcp.configuration.own_start import OwnStart
from kantan_agents.tools.mcp.configuration.process_output import Nonsense, StandardError
from kantan_agents.tools.mcp.configuration.variables import Expanded
from kantan_agents.tools.mcp.failures import text_of
from kantan_agents.tools.mcp.resources import with_resources

if TYPE_CHECKING:
    # At run time, a class with three bases: the methods call the SDK class next to it.
    from agents.mcp.server import _MCPServerWithClientSession as _Base
else:
    _Base = object

_LONGEST_LINE = 300


class StartFailedError(ConnectionError):
    """A server did not accept a connection; the message has no secrets."""


class ConfiguredServer(_Base):
    """A server of any transport."""

    entry: ServerEntry
    masking: Masking

    def configure(self, entry: ServerEntry, masking: Masking) -> None:
        """Set attributes that the SDK's constructors lack."""
        self.entry = entry
        self.masking = masking

    @property
    def kantan_start_seconds(self) -> float:
        """Limit for an attempt to connect; ``mcp/backoff.py`` reads it."""
        return self.entry.start_seconds

    @property
    def kantan_note(self) -> str:
        """Why it may not start, for a message of ``mcp/connection_keeper.py``."""
        return ""

    def last_lines(self, most: int) -> list[str]:
        """Return masked standard error; none for a remote server."""
        del most
        return []

    async def connect(self) -> None:
        """StartFailedError if the server does not accept the connection."""
        try:
            await super().connect()  # type: ignore[no-untyped-call]
        except Exception as error:
            if isinstance(error, OSError) and not isinstance(error, (ConnectionError, TimeoutError)):
                # The same type, because no further attempt would help.
                name = self.masking.masked(str(error.filename or ""))
                raise type(error)(error.errno, error.strerror, name) from None
            raise StartFailedError(f"{self.masking.masked(text_of(error))}{self.kantan_note}") from error

    async def list_tools(self, run_context: Any = None, agent: Any = None) -> Any:
        """Return the tools; TimeoutError after ``start_seconds``, usually less than a call's limit."""
        with anyio.fail_after(self.entry.start_seconds):
            return await super().list_tools(run_context, agent)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.entry.name!r} of {str(self.entry.source.path)!r}>"


class StdioServer(ConfiguredServer, MCPServerStdio):
    """A server that is a process of this machine."""

    standard_error: StandardError
    nonsense: Nonsense
    own_start: OwnStart | None = None

    def create_streams(self) -> Any:
        """Return the streams to a new process, and record its standard error."""
        return self._streams()

    @asynccontextmanager
    async def _streams(self) -> AsyncIterator[Any]:
        self.nonsense.watch()
        params = self.params
        if self.own_start is not None:
            params = params.model_copy(update={"command": self.own_start.program(params.command)})
        async with AsyncExitStack() as stack:
            # The started process has the file; here it can be closed.
            with self.standard_error.receiving() as file:
                streams = await stack.enter_async_context(stdio_client(params, errlog=file))
            yield streams

    @property
    def kantan_note(self) -> str:
        """Standard error, and output except messages."""
        notes = [f"; it wrote: {line[:_LONGEST_LINE]}" for line in self.last_lines(1)]
        if self.nonsense.count:
            first = f": {self.masking.masked(self.nonsense.first)!r}" if self.nonsense.first else ""
            notes.append(f"; its standard output has lines that are not messages of MCP{first}")
        return "".join(notes)

    def last_lines(self, most: int) -> list[str]:
        """Return masked standard error."""
        return [self.masking.masked(line) for line in self.standard_error.lines(most)]


class SseServer(ConfiguredServer, MCPServerSse):
    """A server over server-sent events."""


class HttpServer(ConfiguredServer, MCPServerStreamableHttp):
    """A server over streamable HTTP."""


def make_server(entry: ServerEntry, expanded: Expanded, *, approval: bool = False) -> MCPServer:
    """Return an unconnected server object; with ``approval``, each call needs one."""
    options: dict[str, Any] = {
        "name": entry.name,
        "client_session_timeout_seconds": entry.timeout_seconds,
    }
    if approval:
        options["require_approval"] = "always"
    server: StdioServer | SseServer | HttpServer
    if entry.transport == "stdio":
        own = OwnStart.of(entry.env, expanded.env) if entry.source.is_of_user else None
        server = StdioServer(_process(entry, expanded, expanded.env if own is None else own.env), **options)
        server.own_start = own
        server.standard_error = StandardError()
        server.nonsense = Nonsense(entry.name)
    else:
        params: Any = {
            "url": expanded.url,
            "headers": dict(expanded.headers),
            "timeout": entry.timeout_seconds,
        }
        server = (SseServer if entry.transport == "sse" else HttpServer)(params, **options)
    server.configure(entry, Masking.of(expanded))
    return with_resources(server) if entry.resources else server


def configured_server(server: Any) -> ConfiguredServer | None:
    """Return the object behind a server of ``make_server``."""
    inner = getattr(server, "wrapped_server", server)
    return inner if isinstance(inner, ConfiguredServer) else None


def _process(entry: ServerEntry, expanded: Expanded, env: Mapping[str, str]) -> Any:
    cwd = entry.source.folder
    if entry.cwd is not None:
        cwd = (cwd or entry.source.path.parent) / Path(entry.cwd).expanduser()
    command = Path(expanded.command).expanduser()
    is_path = len(command.parts) > 1
    return {
        # Before the working directory changes, a relative path would be relative to the current one.
        "command": str((cwd or Path.cwd()) / command) if is_path else expanded.command,
        "args": list(expanded.args),
        "env": dict(env),
        "cwd": None if cwd is None else os.fspath(cwd),
        # Otherwise a byte that is not UTF-8 would end the reading without an error.
        "encoding_error_handler": "replace",
    }
