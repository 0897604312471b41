"""Names of the tools of MCP servers, and which of them count for ``allow``.

The operator names a server; the server names its tools. A server may choose a name that looks like a local
tool's or another server's, so such a name counts only for rules that refuse.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import attrs

from kantan_agents.tool_rules import Origin
from kantan_agents.tool_rules.origins import SERVER_PREFIX, SHOWN_PREFIX

HOSTED = "hosted_mcp"
"""Name of every hosted MCP server in rules."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_PLAIN = re.compile(r"(?!mcp_)[A-Za-z0-9_-]+", re.IGNORECASE)


@attrs.frozen
class Surroundings:
    """The other tools of an agent, whose names a server may claim.

    Attributes:
        local: All names of its local tools.
        servers: Names of its MCP servers, as the operator wrote them.
    """

    local: frozenset[str] = frozenset()
    servers: frozenset[str] = frozenset()


def safe(name: str) -> str:
    """Return ``name`` with each character that tool names must not contain replaced by ``_``."""
    return _UNSAFE.sub("_", name)


def server_prefix(server: str) -> str:
    """Return the beginning of the names for rules that the tools of a server have."""
    return f"{SERVER_PREFIX}{safe(server)}__"


def names_in_rules(server: str, own: str) -> tuple[str, ...]:
    """Return the names of a server's tool that begin with the server's name."""
    prefix = server_prefix(server)
    return tuple(dict.fromkeys((f"{prefix}{own}", f"{prefix}{safe(own)}")))


def origin_of(server: str, own: str, shown: str, around: Surroundings | None) -> Origin:
    """Return the origin of a server's tool.

    Args:
        server: Name of the server.
        own: Name of the tool on the server.
        shown: Name that the model sees.
        around: The other tools of the agent; None if they are unknown.
    """
    around = around or Surroundings()
    prefixed = _prefixed(server_prefix, SERVER_PREFIX, server, around, names_in_rules(server, own))
    if shown != own:
        prefixed |= _prefixed(_shown_prefix, SHOWN_PREFIX, server, around, (shown,))
    is_claim = own in around.local or own == HOSTED or _PLAIN.fullmatch(own) is None
    return Origin(None if is_claim else own, prefixed)


def hosted_origin(label: str, called: str | None, around: Surroundings | None) -> Origin:
    """Return the origin of a hosted MCP server, or of one of its tools.

    Args:
        label: Label of the server.
        called: Name of the tool; None for the server as a whole.
        around: The other tools of the agent; None if they are unknown.
    """
    whole = server_prefix(label)[:-2]
    names = (whole,) if called is None else (whole, f"{whole}__{called}")
    return Origin(None, {HOSTED: "", **_prefixed(server_prefix, SERVER_PREFIX, label, around, names)})


def _prefixed(
    prefix_of: Callable[[str], str],
    start: str,
    server: str,
    around: Surroundings | None,
    names: Iterable[str],
) -> dict[str, str]:
    """Return those names that can only belong to this server, each with the server's prefix."""
    prefix = prefix_of(server)
    others = {prefix_of(other) for other in (around.servers if around is not None else ()) if other != server}
    if prefix in others and prefix != f"{start}{server}__":
        return {}  # `git hub` and `git_hub` have the same prefix, and it is the name of the latter
    longer = tuple(other for other in others if len(other) > len(prefix))
    shorter = tuple(other for other in others if len(other) < len(prefix))
    return {
        name: prefix
        for name in names
        if (name.startswith(prefix) and not name.startswith(longer))
        or (name == prefix[:-2] and not name.startswith(shorter))
    }


def _shown_prefix(server: str) -> str:
    # As the SDK does.
    return f"{SHOWN_PREFIX}{safe(server).strip('_-') or 'server'}__"


def server_of(tool: Any) -> str | None:
    """Return the name of the MCP server that offers a function tool, None for a local tool."""
    name = getattr(getattr(tool, "_tool_origin", None), "mcp_server_name", None)
    return name if isinstance(name, str) and name else None
