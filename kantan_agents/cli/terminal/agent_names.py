"""Completes the names of agents, for the options ``--agent``."""

from __future__ import annotations

from collections.abc import Iterable


def complete_agent(incomplete: str) -> Iterable[tuple[str, str]]:
    """Return the agents that can be run here, each with its description.

    Args:
        incomplete: What was typed of the name.
    """
    from kantan_agents.cli.terminal.plain import one_line
    from kantan_agents.definitions import AgentLoader

    found = AgentLoader().load_agents_now()
    return [
        (one.name, one_line(one.description))
        for one in found
        if one.name.startswith(incomplete) and one.name.isprintable() and not one.name.isspace()
    ]
