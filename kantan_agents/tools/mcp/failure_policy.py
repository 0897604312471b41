"""The option ``on_mcp_failure``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from kantan_agents.errors import InvalidOptionError

MCPFailureChoice: TypeAlias = Literal["raise", "continue"]
"""Whether a run fails, or continues without the server's tools."""

MCPFailurePolicy: TypeAlias = MCPFailureChoice | Mapping[str, MCPFailureChoice]
"""One choice for all MCP servers of an agent, or choices by name, ``"raise"`` by default."""


def checked_mcp_failure(policy: Any, servers: Sequence[Any]) -> MCPFailurePolicy:
    """Return ``policy``, a mapping copied; E75 if it is wrong, or names an unknown server."""
    if policy in ("raise", "continue"):
        return policy  # type: ignore[no-any-return]
    if isinstance(policy, Mapping) and all(
        isinstance(name, str) and choice in ("raise", "continue") for name, choice in policy.items()
    ):
        names = [getattr(server, "name", None) for server in servers]
        unknown = [name for name in policy if name not in names]
        if not unknown:
            return dict(policy)
        known = ", ".join(map(repr, names)) or "none"
        reason = f"the agent has no MCP server {unknown[0]!r} (it has: {known})"
    else:
        reason = f'must be "raise", "continue" or a mapping from names of servers to these, not {policy!r}'
    raise InvalidOptionError(option="on_mcp_failure", reason=reason)


def policy_for(policy: MCPFailurePolicy, servers: Sequence[Any]) -> MCPFailurePolicy:
    """Return the part about some servers."""
    if isinstance(policy, str):
        return policy
    names = {server.name for server in servers}
    return policy if policy.keys() <= names else {name: policy[name] for name in policy if name in names}


def choice_for(policy: MCPFailurePolicy, server: str) -> MCPFailureChoice:
    """Return a server's choice."""
    return policy.get(server, "raise") if isinstance(policy, Mapping) else policy
