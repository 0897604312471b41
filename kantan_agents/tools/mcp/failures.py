"""The meaning of an MCP server's exception."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anyio

_LOST: tuple[type[BaseException], ...] = (
    ConnectionError,
    EOFError,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
)
# `mcp` depends on httpx or httpx2, by version, so classes are known by name.
_HTTP_PACKAGES = ("httpx", "httpx2")
_HTTP_LOST = ("ConnectError", "ReadError", "WriteError", "RemoteProtocolError")
_HTTP_SILENT = ("ConnectTimeout", "ReadTimeout", "WriteTimeout", "PoolTimeout")
_CLOSED = "connection closed"
_SILENT = "timed out"
_SESSION_GONE = ("session terminated", "session not found", "no valid session", "session expired")
# Answers of servers and the `mcp` package to an unknown session.
_SESSION_CODES = (-32600, 32600, -32001, -32000)
_MOST_LETTERS = 300


def is_lost(error: BaseException) -> bool:
    """Return whether the connection is gone."""
    return any(
        isinstance(one, _LOST) or _is_http(one, _HTTP_LOST) or _CLOSED in _mcp_message(one)
        for one in _with_causes(error)
    )


def is_silent(error: BaseException) -> bool:
    """Return whether the server did not answer in time."""
    return any(
        isinstance(one, TimeoutError) or _is_http(one, _HTTP_SILENT) or _SILENT in _mcp_message(one)
        for one in _with_causes(error)
    )


def is_session_gone(error: BaseException, server: Any) -> bool:
    """Return whether the session is unknown: the request was not executed."""
    if getattr(server, "session_id", None) is None or _mcp_code(error) not in _SESSION_CODES:
        return False
    message = _mcp_message(error)
    return any(words in message for words in _SESSION_GONE)


def text_of(error: BaseException) -> str:
    """Return an exception's type and message in one line; for a group, its first member's."""
    first = next(iter(_leaves(error)), error)
    message = " ".join(str(first).split())
    if len(message) > _MOST_LETTERS:
        message = f"{message[:_MOST_LETTERS]}..."
    return f"{type(first).__name__}: {message}" if message else type(first).__name__


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    for leaf in _leaves(error):
        one: BaseException | None = leaf
        for _ in range(10):
            if one is None:
                break
            yield one
            one = one.__cause__


def _leaves(error: BaseException) -> Iterator[BaseException]:
    members = getattr(error, "exceptions", None)  # of an exception group
    if not isinstance(members, tuple):
        yield error
        return
    for member in members:
        yield from _leaves(member)


def _is_http(error: BaseException, names: tuple[str, ...]) -> bool:
    kind = type(error)
    return kind.__name__ in names and kind.__module__.partition(".")[0] in _HTTP_PACKAGES


def _is_mcp(error: BaseException) -> bool:
    # `mcp.McpError` in version 1, `mcp.MCPError` in version 2
    return type(error).__name__.lower() == "mcperror"


def _mcp_message(error: BaseException) -> str:
    return str(error).lower() if _is_mcp(error) else ""


def _mcp_code(error: BaseException) -> Any:
    if not _is_mcp(error):
        return None
    code = getattr(error, "code", None)
    return code if code is not None else getattr(getattr(error, "error", None), "code", None)
