"""The tools that a name may mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from kantan_agents.tool_rules import Origin, ToolFacts
from kantan_agents.tool_rules.origins import SERVER_PREFIX
from kantan_agents.tools.server_names import (
    ANY_TOOL,
    Surroundings,
    hosted_mcp_facts,
    names_in_rules,
    names_of_server,
    origin_of,
    server_prefixes,
)

_EVERY_TOOL = "__*"


@attrs.frozen
class Offers:
    """An agent's MCP servers; ``unlisted`` gives reasons, ``hosted`` has labels among them."""

    known: Mapping[str, Sequence[ToolFacts]] = attrs.field(factory=dict)
    unlisted: Mapping[str, str] = attrs.field(factory=dict)
    hosted: frozenset[str] = frozenset()
    around: Surroundings = attrs.field(factory=Surroundings)


@attrs.frozen
class NameReading:
    """One meaning; ``is_whole``: any tool of the server."""

    facts: ToolFacts
    server: str = ""
    unknown: str | None = None
    is_whole: bool = False


def readings_of(name: str, offers: Offers) -> list[NameReading]:
    """Accept a tool's name in rules, or a server's, such as ``mcp__files__*``."""
    found = [
        NameReading(facts, server)
        for server, tools in offers.known.items()
        for facts in tools
        if name in facts.names or name.removesuffix(_EVERY_TOOL) in names_of_server(server)
    ]
    return [*found, *_of_unlisted(name, offers)]


def reading_of_unknown(name: str) -> NameReading | None:
    """Read a name whose server is unknown.

    All divisions into server and tool count for ``deny``, only the shortest server for ``allow``.
    """
    rest = name.removeprefix(SERVER_PREFIX).removesuffix(_EVERY_TOOL)
    if not name.startswith(SERVER_PREFIX) or not rest:
        return None
    parts = rest.split("__")
    if len(parts) == 1 or name.endswith(_EVERY_TOOL):
        return NameReading(_tool_of(rest, ANY_TOOL, name, Offers()), rest, is_whole=True)
    splits = [("__".join(parts[:at]), "__".join(parts[at:])) for at in range(1, len(parts))]
    names = (each for server, own in splits if server and own for each in (own, *names_in_rules(server, own)))
    server, own = splits[0]
    return NameReading(
        _guessed(name, (*names, *names_of_server(rest)), origin_of(server, own, own, None)), server
    )


def _of_unlisted(name: str, offers: Offers) -> Iterator[NameReading]:
    prefixes = {prefix: server for server in offers.around.servers for prefix in server_prefixes(server)}
    longest = max(filter(name.startswith, prefixes), key=len, default=None)
    for server, reason in offers.unlisted.items():
        if name.removesuffix(_EVERY_TOOL) in names_of_server(server):
            yield NameReading(_tool_of(server, ANY_TOOL, name, offers), server, reason, is_whole=True)
        elif longest is not None:
            if longest in server_prefixes(server):
                yield NameReading(_tool_of(server, name[len(longest) :], name, offers), server, reason)
        elif not name.startswith(SERVER_PREFIX):  # the server may have a tool of this name
            yield NameReading(_tool_of(server, name, name, offers), server, reason)


def _tool_of(server: str, own: str, asked: str, offers: Offers) -> ToolFacts:
    if server in offers.hosted:
        facts = hosted_mcp_facts(server, own, offers.around)
        return _guessed(asked, facts.names, facts.origin)
    return _guessed(asked, (own, *names_in_rules(server, own)), origin_of(server, own, own, offers.around))


def _guessed(asked: str, names: Iterable[str], origin: Origin | None) -> ToolFacts:
    return ToolFacts(tuple(dict.fromkeys((asked, *names))), guessed=True, origin=origin)
