"""Resources of MCP servers."""

from __future__ import annotations

import json
from typing import Any

from agents import RunContextWrapper
from agents.mcp import MCPServer
from mcp.types import CallToolResult, Tool
from typing_extensions import Self

from kantan_agents.errors import MCPServerLoopError, ResourceNotReadError
from kantan_agents.support.arguments import checked_int
from kantan_agents.support.log import get_logger
from kantan_agents.tools.mcp.failures import is_session_gone
from kantan_agents.tools.mcp.offers import as_data, check_server, is_answer, may_offer, reason_of
from kantan_agents.tools.mcp.resource_tools import (
    LIST_RESOURCES,
    READ_RESOURCE,
    RESOURCE_TOOLS,
    cut,
    listed_entry,
    refusal,
    shown_content,
    text_content,
    tool_result,
    why_unsafe,
)
from kantan_agents.tools.mcp.server_connections import ask_server

_ASKER = "(none)"  # replaces the agent's name in errors about event loops
_log = get_logger("kantan_agents.mcp")


def with_resources(
    server: MCPServer, *, max_characters: int = 50_000, max_image_bytes: int = 5_000_000
) -> ServerWithResources:
    """Return a server with two more tools: ``list_resources`` and ``read_resource``.

        server = with_resources(MCPServerStdio({"command": "docs-server"}, name="docs"))
        async with server:
            agent = Agent("helper", "Help.", mcp_servers=[server])

    Both are tools of the same server: its name in tool rules, approvals and budgets covers them, its
    ``tool_filter`` applies, and their failures are this server's. A server that declares no resources gets no
    further tools. A tool of the server itself with one of these names takes precedence.

    Args:
        server: The server, connected or not. Use the returned object instead of it.
        max_characters: Most characters of text that a call returns; ``offset`` reads further.
        max_image_bytes: Largest size of an image that is shown to the model.

    Raises:
        InvalidOptionError: E75, ``server`` is not an ``agents.mcp.MCPServer``, or a limit is not positive.
    """
    check_server(server)
    if isinstance(server, ServerWithResources):
        return server
    characters = checked_int("max_characters", max_characters, 1, 10_000_000)
    image = checked_int("max_image_bytes", max_image_bytes, 1, 100_000_000)
    return ServerWithResources(server, characters, image)


async def resource_text(server: MCPServer, uri: str) -> str:
    """Return the text of a resource, for a context value or an input.

        context = {"guide": await resource_text(server, "docs://guide")}

    Args:
        server: The server. It is connected if it is not, or if its connection is lost.
        uri: URI of the resource.

    Raises:
        ResourceNotReadError: E38, the server does not know the resource, the resource is not text, or the
            server cannot be used.
        MCPServerLoopError: E37, its connection is on an event loop that cannot make progress.
        InvalidOptionError: E75, ``server`` is not an MCP server.
    """
    check_server(server)
    try:
        read = await ask_server(server, lambda: server.read_resource(uri), _ASKER)
        contents = as_data(read).get("contents", [])
    except MCPServerLoopError:
        raise
    except Exception as error:
        raise ResourceNotReadError(uri=uri, server=server.name, reason=reason_of(error)) from error
    texts = [one["text"] for one in contents if isinstance(one.get("text"), str)]
    if len(texts) < len(contents) or not texts:
        raise ResourceNotReadError(uri=uri, server=server.name, reason="it is not a text")
    return "\n".join(texts)


class ServerWithResources(MCPServer):
    """An MCP server with tools for its resources; ``with_resources`` returns it.

    All other attributes are the server's.
    """

    def __init__(self, server: MCPServer, max_characters: int, max_image_bytes: int) -> None:
        # Not `super().__init__`: it would overwrite the server's attributes with defaults.
        self._server = server
        self._max_characters = max_characters
        self._max_image_bytes = max_image_bytes
        self._taken: frozenset[str] = frozenset()  # names of the server's own tools

    def __getattr__(self, name: str) -> Any:
        if name == "_server":  # a copy that is not filled yet
            raise AttributeError(name)
        return getattr(self._server, name)

    @property
    def wrapped_server(self) -> MCPServer:
        """The server itself."""
        return self._server

    @property
    def name(self) -> str:
        """The name."""
        return self._server.name

    @property
    def cached_tools(self) -> list[Tool] | None:
        """The tools of the latest listing, if the server caches them."""
        listed = self._server.cached_tools
        return None if listed is None else [*listed, *self._added()]

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.cleanup()

    async def connect(self) -> None:
        """Connect."""
        await self._server.connect()  # type: ignore[no-untyped-call]

    async def cleanup(self) -> None:
        """Disconnect."""
        await self._server.cleanup()  # type: ignore[no-untyped-call]

    async def list_tools(
        self, run_context: RunContextWrapper[Any] | None = None, agent: Any = None
    ) -> list[Tool]:
        """Add the tools for resources."""
        listed = await self._server.list_tools(run_context, agent)
        if not may_offer(self._server, "resources"):
            return listed
        self._taken = frozenset(tool.name for tool in listed)
        added = self._added()
        # Private; without it, the tools are not filtered, and rules can still deny them.
        apply_filter = getattr(self._server, "_apply_tool_filter", None)
        if apply_filter is not None:
            added = await apply_filter(added, run_context, agent)
        return [*listed, *added]

    async def call_tool(
        self, tool_name: str, arguments: dict[str, Any] | None, meta: dict[str, Any] | None = None
    ) -> CallToolResult:
        """Call a tool, or read or list resources."""
        if tool_name not in (LIST_RESOURCES, READ_RESOURCE) or tool_name in self._taken:
            more = {} if meta is None else {"meta": meta}
            return await self._server.call_tool(tool_name, arguments, **more)
        given = arguments or {}
        if tool_name == LIST_RESOURCES:
            return await self._list(given.get("cursor"))
        return await self._read(given.get("uri"), given.get("offset") or 0)

    async def list_prompts(self) -> Any:
        """Return the server's prompts."""
        return await self._server.list_prompts()

    async def get_prompt(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
        """Return a prompt of the server."""
        return await self._server.get_prompt(name, arguments)

    async def list_resources(self, cursor: str | None = None) -> Any:
        """Return a page of the server's resources."""
        return await self._server.list_resources(cursor)

    async def list_resource_templates(self, cursor: str | None = None) -> Any:
        """Return a page of the server's templates of URIs."""
        return await self._server.list_resource_templates(cursor)

    async def read_resource(self, uri: str) -> Any:
        """Return the content of a resource."""
        return await self._server.read_resource(uri)

    def _added(self) -> list[Tool]:
        return [Tool.model_validate(tool) for tool in RESOURCE_TOOLS if tool["name"] not in self._taken]

    async def _list(self, cursor: Any) -> CallToolResult:
        if cursor is not None and not isinstance(cursor, str):
            return refusal("cursor must be the next_cursor of the previous page.")
        page = as_data(await self._server.list_resources(cursor or None))
        answer: dict[str, Any] = {"next_cursor": page["nextCursor"]} if page.get("nextCursor") else {}
        answer["resources"] = [listed_entry(one) for one in page.get("resources", [])]
        if not cursor:
            answer["templates"] = await self._templates()
        text, more = cut(json.dumps(answer, ensure_ascii=False), 0, self._max_characters)
        rest = [text_content("The list is too long to be shown completely.")] if more else []
        return tool_result([text_content(text), *rest])

    async def _templates(self) -> list[dict[str, Any]]:
        try:
            page = as_data(await self._server.list_resource_templates())
        except Exception as error:  # noqa: BLE001 - a server may have resources and know no templates
            _log.debug("resource_templates_not_listed", server=self.name, reason=reason_of(error))
            return []
        return [listed_entry(one) for one in page.get("resourceTemplates", [])]

    async def _read(self, uri: Any, offset: Any) -> CallToolResult:
        reason = why_unsafe(uri)
        if reason is not None:
            return refusal(reason)
        if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
            return refusal("offset must be a number of characters.")
        try:
            contents = as_data(await self._server.read_resource(uri)).get("contents", [])
        except Exception as error:
            if not is_answer(error) or is_session_gone(error, self._server):
                raise  # the server is connected again
            # Newer versions of the SDK omit the server's answer.
            return refusal(f"Cannot read {uri}: {reason_of(error)}")
        limits = self._max_characters, self._max_image_bytes
        parts = [part for one in contents for part in shown_content(one, offset, *limits)]
        return tool_result(parts or [text_content("The resource is empty.")])

    def __repr__(self) -> str:
        return f"with_resources({self._server!r})"
