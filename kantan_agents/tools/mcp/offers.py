"""A server's offers in addition to tools."""

from __future__ import annotations

from typing import Any, Literal

from agents.mcp import MCPServer

from kantan_agents.errors import InvalidOptionError

_LONGEST_REASON = 300
_OF_CONNECTION = frozenset({-32000, -32001, 408})  # closed; timeouts of mcp 2 and 1


def check_server(server: object) -> None:
    """Raise E75 if ``server`` is not an ``agents.mcp.MCPServer``."""
    if not isinstance(server, MCPServer):
        reason = f"must be an MCPServer of agents.mcp, not {type(server).__name__}"
        raise InvalidOptionError(option="server", reason=reason)


def may_offer(server: MCPServer, what: Literal["prompts", "resources"]) -> bool:
    """Return False if a connected server has declared that it offers none."""
    session = getattr(server, "session", None)
    declared: Any = getattr(session, "server_capabilities", None)  # of mcp 2
    if declared is None:
        declared = getattr(getattr(server, "server_initialize_result", None), "capabilities", None)
    return declared is None or getattr(declared, what, None) is not None


def as_data(value: Any) -> dict[str, Any]:
    """Return an answer as plain data, with the protocol's names (``mimeType``)."""
    data: dict[str, Any] = value.model_dump(mode="json", by_alias=True, exclude_none=True)
    return data


def reason_of(error: Exception) -> str:
    """Return a rejection's reason in one line."""
    text = " ".join(str(error).split())
    return text[:_LONGEST_REASON] or type(error).__name__


def is_answer(error: Exception) -> bool:
    """Return whether a server answered with an error, so that the connection works."""
    code = getattr(getattr(error, "error", None), "code", None)  # mcp's own exception, whose name has changed
    return isinstance(code, int) and code not in _OF_CONNECTION
