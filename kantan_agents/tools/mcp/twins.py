"""A second connection of an MCP server object, opened and closed in a dedicated task.

The task that opened an MCP transport must close it, and the user's task owns the first connection. So a copy
of the server object owns the new one, and the user's object uses its session.
"""

from __future__ import annotations

import asyncio
import copy
from contextlib import AsyncExitStack
from typing import Any

# The SDK creates these for each server; a copy must not share them.
_LOCKS = ("_cleanup_lock", "_request_lock")


def has_session(server: Any) -> bool:
    """Return whether a server object is the SDK's, with a replaceable session."""
    attributes = getattr(server, "__dict__", {})
    return "session" in attributes and isinstance(attributes.get("exit_stack"), AsyncExitStack)


def twin_of(server: Any) -> Any:
    """Return an unconnected copy; for another class, the object itself."""
    if not has_session(server):
        return server
    twin = copy.copy(server)
    twin.session = None
    twin.exit_stack = AsyncExitStack()
    for name in _LOCKS:
        if hasattr(twin, name):
            setattr(twin, name, asyncio.Lock())
    return twin


def adopt_session(server: Any, twin: Any) -> None:
    """Make a server object use its connected twin's session."""
    if twin is server:
        return
    server.session = twin.session
    server.server_initialize_result = twin.server_initialize_result
    # The SDK's private source of the public `session_id`.
    if hasattr(twin, "_get_session_id"):
        server._get_session_id = twin._get_session_id
    server.invalidate_tools_cache()  # it may be another version of the server


def is_closed(session: Any) -> bool:
    """Return whether a session can send nothing anymore; False if unknown."""
    # No public access exists: a request on a closed session fails like one lost in transit.
    sender = getattr(session, "_dispatcher", None) or getattr(session, "_write_stream", None)  # mcp 2, mcp 1
    return getattr(sender, "_closed", False) is True


def loop_of(session: Any) -> asyncio.AbstractEventLoop | None:
    """Return the event loop of a session; None if unknown."""
    # The session's task group belongs to the task that opened it. No public access exists.
    scope = getattr(getattr(session, "_task_group", None), "cancel_scope", None)
    task = getattr(scope, "_host_task", None)
    return task.get_loop() if isinstance(task, asyncio.Task) else None
