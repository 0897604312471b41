"""``mcpServers`` of a subagent file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from kantan_agents.errors import InvalidMCPConfigurationError
from kantan_agents.subagent_files import AgentDefinition
from kantan_agents.tools.mcp.configuration.entry import ServerEntry, ServerSource
from kantan_agents.tools.mcp.configuration.parse import name_mistake, parse_servers
from kantan_agents.tools.mcp.configuration.read_file import digest_of

_KEY = "mcpServers"
_AGENT_DIRECTORIES = (".kode", ".claude")
_DIRECTORY_VARIABLES = ("KODE_CONFIG_DIR", "CLAUDE_CONFIG_DIR")
_NO_FILE = "(no file)"


@attrs.frozen
class WantedServers:
    """``entries`` are the file's own servers."""

    names: tuple[str, ...] = ()
    entries: tuple[ServerEntry, ...] = ()


def wanted_servers(definition: AgentDefinition) -> WantedServers:
    """Return the servers of a definition; E181 with every mistake."""
    if definition.mcp_servers is None:
        return WantedServers()
    names: list[str] = []
    own: dict[str, Any] = {}
    problems: list[str] = []
    for place, name, options in _items(definition.mcp_servers):
        mistake = name_mistake(name)
        if mistake:
            problems.append(f"{place}: {mistake}")
            continue
        names.append(name)
        if options is None:  # `github:` means the configured server, like `github`
            continue
        if name in own:
            problems.append(f"{place}: the server {name!r} is configured twice")
        own[name] = options
    parsed = parse_servers(own, source_of(definition), _KEY)
    problems += parsed.problems
    if problems:
        raise InvalidMCPConfigurationError(path=str(definition.path or _NO_FILE), problems=problems)
    return WantedServers(tuple(dict.fromkeys(names)), parsed.entries)


def _items(servers: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(servers, str):
        servers = [name.strip() for name in servers.split(",") if name.strip()]
    if isinstance(servers, Mapping):
        yield from ((f"{_KEY}.{name}", name, options) for name, options in servers.items())
        return
    for number, item in enumerate(servers if isinstance(servers, list) else [servers]):
        place = f"{_KEY}[{number}]"
        if isinstance(item, Mapping) and len(item) == 1:
            ((name, options),) = item.items()
            yield place, name, options
        else:
            yield place, item, None


def source_of(definition: AgentDefinition) -> ServerSource:
    """Return the source; trust covers only ``mcpServers``: a changed prompt starts no other program."""
    data = json.dumps(definition.mcp_servers, sort_keys=True, ensure_ascii=True)
    path = Path(os.path.realpath(definition.path)) if definition.path else Path(_NO_FILE)
    digest = digest_of(data.encode())
    if definition.path is None:
        return ServerSource(path, digest)
    if not _user_directories().isdisjoint(path.parents):
        return ServerSource(path, digest, folder=path.parent, is_of_user=True)
    parents = path.parents
    of_project = (parent.parent for parent in parents if parent.name in _AGENT_DIRECTORIES)
    return ServerSource(path, digest, folder=next(of_project, path.parent))


def _user_directories() -> frozenset[Path]:
    given = (os.environ.get(variable, "") for variable in _DIRECTORY_VARIABLES)
    places = (os.path.expanduser(f"~/{name}") for name in _AGENT_DIRECTORIES)  # noqa: PTH111 - never fails
    # A relative one depends on the working directory, so it is not the user's alone.
    return frozenset(Path(os.path.realpath(place)) for place in (*filter(os.path.isabs, given), *places))
