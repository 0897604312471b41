"""The connections of all MCP servers of this process, one for each server object."""

from __future__ import annotations

import os
import threading
from functools import partial
from typing import Any

from kantan_agents.tools.mcp.connection import Connection

_known: dict[int, Connection] = {}
_known_lock = threading.Lock()


def _forget(key: int, connection: Connection) -> None:
    """Forget a connection whose server object is gone, unless another object has its id by now."""
    if _known.get(key) is connection:
        del _known[key]


def _forget_all() -> None:
    """Forget everything in a forked process: the connections belong to its parent."""
    global _known_lock  # noqa: PLW0603 - another thread of the parent may have held it
    _known_lock = threading.Lock()
    _known.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


def connection_of(server: Any) -> Connection:
    """Return what is known about the connection of a server object."""
    known = _known.get(id(server))
    if known is not None and known.is_of(server):
        return known
    with _known_lock:
        known = _known.get(id(server))
        if known is None or not known.is_of(server):
            key = id(server)
            known = _known[key] = Connection(server, partial(_forget, key))
    return known
