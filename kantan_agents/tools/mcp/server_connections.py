"""One connection for each MCP server object of this process."""

from __future__ import annotations

import os
import threading
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from kantan_agents.tools.mcp.connection import Connection
from kantan_agents.tools.mcp.twins import has_session

T = TypeVar("T")

TENDED = "_kantan_tended_servers"
"""Attribute of an SDK agent for its ``Tended`` servers; not copied."""

_known: dict[int, Connection] = {}
_known_lock = threading.Lock()


class Tended:
    """A server object whose calls go through its ``Connection``; it has the object's attributes.

    A wrapper names the real server, which has the connection, as ``wrapped_server``.
    """

    def __init__(self, server: Any, agent_name: str) -> None:
        self.server = server
        self._inner = _innermost(server)
        self._last_tools: Sequence[Any] | None = None
        self._agent_name = agent_name

    @property
    def connection(self) -> Connection:
        """The connection of the server, or of the wrapped one."""
        return connection_of(self._inner)

    @property
    def last_tools(self) -> Sequence[Any] | None:
        """The latest listing."""
        return self._last_tools if self._inner is not self.server else self.connection.last_tools

    def remember(self, tools: Sequence[Any]) -> None:
        """Store listed tools."""
        if self._inner is not self.server:
            self._last_tools = tools
        else:
            self.connection.last_tools = tools

    def __getattr__(self, name: str) -> Any:
        if name == "server" or name.startswith("__"):  # of an unfinished copy
            raise AttributeError(name)
        return getattr(self.server, name)

    async def call_tool(self, tool_name: str, arguments: Any, **options: Any) -> Any:
        """Call a tool."""
        call = self.server.call_tool
        return await self.connection.call(lambda: call(tool_name, arguments, **options), self._agent_name)


def tended_servers(agent: Any) -> list[Tended]:
    """Return an SDK agent's servers; the same objects each time."""
    known: dict[int, Tended] = vars(agent).setdefault(TENDED, {})
    found = []
    for server in agent.mcp_servers:
        one = known.get(id(server))
        if one is None or one.server is not server:
            one = known[id(server)] = Tended(server, agent.name)
        found.append(one)
    return found


async def ask_server(server: Any, question: Callable[[], Awaitable[T]], agent_name: str) -> T:
    """Send a repeatable request like ``Connection.ask``."""
    return await Tended(server, agent_name).connection.ask(question, agent_name)


def _forget(key: int, connection: Connection) -> None:
    """Forget a deleted server object's connection, unless another object has its id by now."""
    if _known.get(key) is connection:
        del _known[key]


def _forget_all() -> None:
    """In a forked process, the connections belong to the parent."""
    global _known_lock  # noqa: PLW0603 - another thread of the parent may have held it
    _known_lock = threading.Lock()
    _known.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


def connection_of(server: Any) -> Connection:
    """Return the object's connection."""
    known = _known.get(id(server))
    if known is not None and known.is_of(server):
        return known
    with _known_lock:
        known = _known.get(id(server))
        if known is None or not known.is_of(server):
            key = id(server)
            known = _known[key] = Connection(server, partial(_forget, key))
    return known


def is_of_sdk(server: Any) -> bool:
    """Return whether the library connects a server object, so that any task may use it."""
    return has_session(_innermost(server))


def _innermost(server: Any) -> Any:
    while getattr(server, "wrapped_server", None) is not None:
        server = server.wrapped_server
    return server
