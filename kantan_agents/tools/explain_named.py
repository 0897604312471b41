"""Explains decisions about names that tools of MCP servers may have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from kantan_agents.core.interception import tool_of
from kantan_agents.errors import ToolNotAllowedError
from kantan_agents.tool_rules import RuleLayers
from kantan_agents.tool_rules.globs import is_glob, literal_beginning
from kantan_agents.tool_rules.origins import SERVER_PREFIX
from kantan_agents.tools.explain import Explanation, check_arguments, explain_facts, explain_layers
from kantan_agents.tools.meanings_of_names import NameReading, Offers, readings_of
from kantan_agents.tools.server_names import safe, server_prefixes


def explain_named(
    layers: RuleLayers, name: str, arguments: Mapping[str, Any] | str | None, offers: Offers
) -> Explanation:
    """Explain a name that no local tool has."""
    readings = readings_of(name, offers)
    if not readings:
        by_name = explain_layers(layers, name, arguments)
        what = "MCP server for" if name.startswith(SERVER_PREFIX) else "tool with"
        return attrs.evolve(by_name, unknown=f"the agent itself has no {what} the name {name!r}")
    check_arguments(arguments)
    explained = [_explained_reading(layers, reading, arguments, offers) for reading in readings]
    if len(explained) == 1:
        return explained[0]
    decisive = next((one for one in explained if not one.allowed), explained[0])
    unknown = "; ".join(dict.fromkeys(one.unknown for one in explained if one.unknown is not None))
    return attrs.evolve(decisive, tool=name, unknown=unknown or None, tools=tuple(explained))


def _explained_reading(
    layers: RuleLayers, reading: NameReading, arguments: Mapping[str, Any] | str | None, offers: Offers
) -> Explanation:
    facts = reading.facts
    if reading.unknown is None:
        return explain_facts(layers, facts, arguments)
    facts = attrs.evolve(facts, names=(*facts.names, *_spelt_alike(layers, facts.names)))
    explained = attrs.evolve(explain_facts(layers, facts, arguments), unknown=reading.unknown)
    denial = _denial_of_one_tool(layers, reading.server, offers) if reading.is_whole else None
    if denial is None or not explained.allowed:
        return explained
    layer, entry = denial
    return attrs.evolve(
        explained,
        allowed=False,
        rule=f"deny: {entry}",
        layer=layer,
        error=ToolNotAllowedError(tool_name=facts.name),
        unknown=f"{reading.unknown}; the rule may refuse one of its tools",
    )


def _spelt_alike(layers: RuleLayers, names: Iterable[str]) -> set[str]:
    """Return denied names that the SDK would spell alike."""
    known = set(map(safe, names))
    return {name for _, entry in layers.denials() if safe(name := tool_of(entry)) in known}


def _denial_of_one_tool(layers: RuleLayers, server: str, offers: Offers) -> tuple[str, str] | None:
    prefixes = server_prefixes(server)
    for layer, entry in layers.denials():
        name = tool_of(entry)
        beginning = literal_beginning(name)
        may_be_own = not beginning.startswith(SERVER_PREFIX)  # the server may have a tool of this name
        names_server = beginning.startswith(prefixes) or (
            is_glob(name) and any(prefix.startswith(beginning) for prefix in prefixes)
        )
        if name not in offers.around.local and (may_be_own or names_server):
            return layer, entry
    return None
