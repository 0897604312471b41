"""``kantan-agents agents search``: agents by words of name and description."""

from __future__ import annotations

import typer

from kantan_agents.cli.agents.rows import agent_data, print_agents
from kantan_agents.cli.terminal.failures import EXIT_FAILED
from kantan_agents.cli.terminal.plain import json_text
from kantan_agents.definitions import AgentLoader


def search_agents(text: str, *, as_json: bool) -> None:
    """Print the agents that hold every word of ``text``, the best first.

    Raises:
        Exit: With code 1, there is none.
    """
    catalog = AgentLoader().load_agents_now()
    found = catalog.search(text)
    if as_json:
        typer.echo(json_text([agent_data(catalog, definition) for definition in found], default=str))
    elif found:
        print_agents(catalog, found)
    else:
        typer.echo("No agent found.")
    if not found:
        raise typer.Exit(EXIT_FAILED)
