"""Completion of agent names for ``--agent``."""

from __future__ import annotations

from collections.abc import Iterable

from kantan_agents.cli.terminal.shell_words import shell_words


def complete_agent(incomplete: str) -> Iterable[tuple[str, str]]:
    """Return the agents found here."""
    from kantan_agents.subagent_files import AgentLoader

    found = AgentLoader().load_agents_now()
    return list(shell_words(((one.name, one.description) for one in found), incomplete))
