"""Completes the names of agents, for the options ``--agent``."""

from __future__ import annotations

from collections.abc import Iterable

from kantan_agents.cli.terminal.shell_words import shell_words


def complete_agent(incomplete: str) -> Iterable[tuple[str, str]]:
    """Return the agents of the files that are found here, each with its description.

    Args:
        incomplete: What was typed of the name.
    """
    from kantan_agents.subagent_files import AgentLoader

    found = AgentLoader().load_agents_now()
    return list(shell_words(((one.name, one.description) for one in found), incomplete))
