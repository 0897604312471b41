"""Names of the tools of MCP servers, and which of them count for ``allow``.

The operator names a server; the server names its tools. It may imitate a local tool or another server, so
such a name counts only for denials.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import Any

import attrs

from kantan_agents.tool_rules import Origin, ToolFacts
from kantan_agents.tool_rules.decide import schema_of
from kantan_agents.tool_rules.globs import is_glob
from kantan_agents.tool_rules.names import CACHED_NAMES
from kantan_agents.tool_rules.origins import SERVER_PREFIX, SHOWN_PREFIX

HOSTED = "hosted_mcp"
"""Name of every hosted MCP server in rules."""

ANY_TOOL = "\0any tool of the server\0"
"""Not a tool's name; only entries for every tool of a server cover it."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_PLAIN = re.compile(r"(?!mcp_)[A-Za-z0-9_-]+", re.IGNORECASE)
_NAMELESS = "server"
_CACHED = 256


@attrs.frozen
class Surroundings:
    """The agent's other tools, whose names a server may claim."""

    local: frozenset[str] = frozenset()
    servers: frozenset[str] = frozenset()


def safe(name: str) -> str:
    """Return ``name`` with ``_`` for each character that tool names must not contain."""
    return _UNSAFE.sub("_", name)


@functools.lru_cache(maxsize=_CACHED)
def names_of_server(server: str) -> tuple[str, ...]:
    """Return rule names such as ``mcp__my server`` and ``mcp__my_server``.

    A URL also counts without its password and query, as the SDK shows it.
    """
    known = (server, _name_in_sdk(server))
    return tuple(
        dict.fromkeys(f"{SERVER_PREFIX}{name}" for name in (*known, *map(safe, known)) if name.strip())
    )


@functools.lru_cache(maxsize=_CACHED)
def server_prefixes(server: str) -> tuple[str, ...]:
    """Return the prefixes of rule names with both server and tool."""
    return (*(f"{name}__" for name in names_of_server(server)), _shown_prefix(server))


@functools.lru_cache(maxsize=CACHED_NAMES)  # servers are listed in each turn
def names_in_rules(server: str, own: str) -> tuple[str, ...]:
    """Return prefixed names of a tool, and the server's names.

    The SDK's prefixed name also appears while another server has a tool of the same name.
    """
    wholes = names_of_server(server)
    tools = (f"{whole}__{name}" for whole in wholes for name in dict.fromkeys((own, safe(own))))
    # A pattern such as `mcp__[team] files__*` would not match its own spelling.
    spelt = (f"{whole}__*" for whole in wholes if is_glob(whole))
    return (*tools, *wholes, *spelt, f"{_shown_prefix(server)}{_shown_part(own, 'tool')}")


@functools.lru_cache(maxsize=CACHED_NAMES)
def origin_of(server: str, own: str, shown: str, around: Surroundings | None) -> Origin:
    """Return the origin of a server's tool."""
    around = around or Surroundings()
    names = names_in_rules(server, own)
    prefixed = _unclaimed(server, (*names, shown) if shown != own else names, around)
    is_claim = own in around.local or own == HOSTED or _PLAIN.fullmatch(own) is None
    return Origin(None if is_claim else own, prefixed, own)


def hosted_origin(label: str, called: str | None, around: Surroundings | None) -> Origin:
    """Return the origin of a hosted MCP server, or of its tool ``called``."""
    names = names_of_server(label) if called is None else names_in_rules(label, called)
    return Origin(None, {HOSTED: "", **_unclaimed(label, names, around or Surroundings())}, called)


def hosted_mcp_facts(label: str, called: str, around: Surroundings | None = None) -> ToolFacts:
    """Return the facts of one tool of a hosted MCP server."""
    names = (called, *names_in_rules(label, called), HOSTED)
    origin = hosted_origin(label, called, around)
    return ToolFacts(tuple(dict.fromkeys(names)), schema=schema_of(None), origin=origin)


def _unclaimed(server: str, names: Iterable[str], around: Surroundings) -> dict[str, str]:
    """Return names that can only mean this server, with prefixes."""
    others = _prefixes_of_others(server, around.servers)
    # `git hub` and `git_hub` have the same safe prefix, which is the latter's name.
    written = (f"{SERVER_PREFIX}{server}__", f"{SHOWN_PREFIX}{server}__")
    mine = [prefix for prefix in server_prefixes(server) if prefix in written or prefix not in others]
    found: dict[str, str] = {}
    for name in names:
        whole = next((prefix for prefix in mine if f"{name}__" == prefix), None)
        prefix = whole or max(filter(name.startswith, mine), key=len, default=None)
        if prefix is None or name in around.local:
            continue
        if whole is not None:
            # `mcp__a__b` may be the server `a__b`, or the tool `b` of the server `a`.
            is_claimed = name.startswith(others)
        else:
            is_claimed = f"{name}__" in others or any(
                name.startswith(other) for other in others if len(other) > len(prefix)
            )
        if not is_claimed:
            found[name] = prefix
    return found


@functools.lru_cache(maxsize=_CACHED)
def _prefixes_of_others(server: str, servers: frozenset[str]) -> tuple[str, ...]:
    return tuple({prefix for other in servers if other != server for prefix in server_prefixes(other)})


def _shown_prefix(server: str) -> str:
    return f"{SHOWN_PREFIX}{_shown_part(_name_in_sdk(server), _NAMELESS)}__"


def _name_in_sdk(server: str) -> str:
    # Imported here: explaining a name rarely needs the SDK.
    from agents.mcp._logging import get_mcp_server_log_name  # has no public name

    return get_mcp_server_log_name(server)


def _shown_part(name: str, otherwise: str) -> str:
    # Like the SDK.
    return safe(name).strip("_-") or otherwise


def server_of(tool: Any) -> str | None:
    """Return the MCP server's name, None for a local tool.

    An empty name becomes the SDK's name for the server: its tools must not pass for local ones.
    """
    name = getattr(getattr(tool, "_tool_origin", None), "mcp_server_name", None)
    if not isinstance(name, str):
        return None
    server, _ = bound_to(tool)
    written = getattr(server, "name", None)
    return (written if isinstance(written, str) else "") or name or _NAMELESS


def bound_to(tool: Any) -> tuple[Any, Any]:
    """Return the server, and its tool, that a function tool calls.

    The original names exist only in the arguments the SDK has bound; no public access exists.
    """
    invoke = implementation_of(tool)
    bound = invoke.args if isinstance(invoke, functools.partial) else ()
    return (bound[0], bound[1]) if len(bound) > 1 else (None, None)


def implementation_of(tool: Any) -> Any:
    """Return the SDK's wrapper of a tool's function, shared by all copies."""
    return getattr(getattr(tool, "on_invoke_tool", None), "_invoke_tool_impl", None)
