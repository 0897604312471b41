"""Makes entries of the data in a configuration file, and finds all mistakes in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import attrs

from kantan_agents.tools.mcp.configuration.entry import START_SECONDS, TIMEOUT_SECONDS, ServerEntry, Source
from kantan_agents.tools.mcp.configuration.mistakes import mistakes_of, not_a, transport_of

_LONGEST_NAME = 40  # with the names of its tools, within the 64 letters that providers accept
_MOST_SERVERS = 1_000
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?")


@attrs.frozen
class Parsed:
    """What a mapping of servers contains.

    Attributes:
        entries: The servers without mistakes.
        problems: Every mistake, each with its place.
    """

    entries: tuple[ServerEntry, ...]
    problems: tuple[str, ...]


def parse_servers(servers: Any, source: Source, place: str) -> Parsed:
    """Return the servers of a mapping from names to their configurations.

    Args:
        servers: The mapping.
        source: Where it is written.
        place: Its place in the file, such as ``mcpServers``.
    """
    if not isinstance(servers, Mapping):
        return Parsed((), (f"{place}: must map names of servers to their configuration, {not_a(servers)}",))
    if len(servers) > _MOST_SERVERS:
        return Parsed((), (f"{place}: has more than {_MOST_SERVERS} servers",))
    entries: list[ServerEntry] = []
    problems: list[str] = []
    seen: dict[str, Any] = {}
    for name, options in servers.items():
        where = f"{place}.{name}"
        mistake = name_mistake(name)
        alike = seen.setdefault(_folded(name), name)
        if mistake is None and alike != name:
            mistake = f"differs from {alike!r} only by case, - or _, so that people would confuse them"
        mistakes = [f"{where}: {mistake}"] if mistake else []
        mistakes += [f"{where}{one}" for one in mistakes_of(options)]
        problems += mistakes
        if not mistakes:
            entries.append(_entry(name, options, source))
    return Parsed(tuple(entries), tuple(problems))


def name_mistake(name: Any) -> str | None:
    """Return why a server cannot have this name, or None if it can."""
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        return "a name must consist of letters, digits, - and _, and begin and end with a letter or digit"
    if len(name) > _LONGEST_NAME:
        return f"a name may have {_LONGEST_NAME} characters"
    if "__" in name:
        return "a name must not contain __, which separates a server from its tool"
    return None


def _folded(name: Any) -> str:
    return str(name).lower().replace("-", "").replace("_", "")


def _entry(name: str, options: Mapping[str, Any], source: Source) -> ServerEntry:
    transport = transport_of(options)
    assert transport is not None  # it has no mistakes
    return ServerEntry(
        name,
        transport,
        source,
        command=options.get("command", ""),
        args=tuple(options.get("args", ())),
        env=dict(options.get("env", {})),
        cwd=options.get("cwd"),
        url=options.get("url", ""),
        headers=dict(options.get("headers", {})),
        timeout_seconds=float(options.get("timeout_seconds", TIMEOUT_SECONDS)),
        start_seconds=float(options.get("start_seconds", START_SECONDS)),
        resources=options.get("resources", True),
        is_disabled=options.get("disabled", False),
    )
