"""Finds the agent that ``kantan-agents eval run`` evaluates."""

from __future__ import annotations

from typing import Any

from kantan_agents.agent import Agent
from kantan_agents.cli.agents.named import read_agent
from kantan_agents.cli.replay.load_agent import load_agent
from kantan_agents.cli.run.agent_from_file import agent_from_file


def find_agent(name: str, model: str | None) -> Agent[Any]:
    """Return the agent.

    Args:
        name: The name of an agent file, the path of one that ends with ``.md``, or ``MODULE:NAME``.
        model: Replaces the model of an agent in a module; for one from a file, as ``run`` does.

    Raises:
        AgentNotFoundError, AgentFileError, InvalidDefinitionError: E32, E30, E31, as ``read_agent``.
        InvalidOptionError: E75, there is no such object in a module, or the file has no prompt.
        ModelNotFoundError: E19, there is no such model.
    """
    if ":" in name and not name.endswith(".md"):
        agent = load_agent(name)
        return agent if model is None else agent.clone(model=model)
    return agent_from_file(read_agent(name), model)
