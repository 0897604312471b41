"""``Variant``: one of the agents that are compared, and what identifies it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from kantan_agents.agent import Agent
from kantan_agents.core.prompt import Prompt
from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation.experiment.identity import identity_of, model_of

Variants = Agent[Any] | Iterable[Agent[Any]] | Mapping[str, Agent[Any] | Prompt | str]
"""What ``evaluate`` takes: an agent, several, or agents and prompts by name."""


@attrs.frozen
class Variant:
    """One of the agents that are compared.

    Attributes:
        name: Its name in the evaluation.
        agent: The agent.
        hash: What identifies it; see ``identity_of``.
    """

    name: str
    agent: Agent[Any]
    hash: str

    def to_dict(self) -> dict[str, Any]:
        """Return what is stored of it, as JSON data."""
        given = self.agent.instructions
        prompt = given if isinstance(given, Prompt) else None
        return {
            "hash": self.hash,
            "agent": self.agent.name,
            "model": model_of(self.agent),
            "prompt": None if prompt is None else prompt.name,
            "version": None if prompt is None else prompt.version,
        }


async def variants_of(
    given: Variants, agent: Agent[Any] | None, options: Mapping[str, Any]
) -> tuple[Variant, ...]:
    """Return variants with names.

    Args:
        given: An agent, several, or agents and prompts by name.
        agent: The agent that prompts are given to.
        options: What all runs have in common, as JSON data.

    Raises:
        InvalidOptionError: E75, there is none, one is something else, or two have one name.
    """
    if isinstance(given, Mapping):
        named = [(_name(name), _agent(name, one, agent)) for name, one in given.items()]
    else:
        listed = [given] if isinstance(given, Agent) else _listed(given)
        named = [(default_name(one), one) for one in listed]
    if not named:
        raise _invalid("give at least one agent")
    names = [name for name, _ in named]
    for name in names:
        if names.count(name) > 1:
            raise _invalid(f"two are named {name!r}; name them: {{'a': ..., 'b': ...}}")
    return tuple([Variant(name, one, await identity_of(name, one, options)) for name, one in named])


def default_name(agent: Agent[Any]) -> str:
    """Return the name of an agent's variant: that of its prompt and its version, or else its own."""
    prompt = agent.instructions
    if not isinstance(prompt, Prompt):
        return agent.name
    return f"{prompt.name} {prompt.version}" if prompt.version else prompt.name


def _listed(given: Any) -> list[Agent[Any]]:
    if isinstance(given, (str, Prompt)) or not isinstance(given, Iterable):
        raise _invalid(f"must be an Agent, several, or a dict, not {type(given).__name__}")
    listed = list(given)
    for one in listed:
        if not isinstance(one, Agent):
            raise _invalid(f"must be Agents, or a dict of prompts by name, not {type(one).__name__}")
    return listed


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name.strip():
        raise _invalid(f"a name must be a text, not {name!r}")
    return name


def _agent(name: str, given: Any, agent: Agent[Any] | None) -> Agent[Any]:
    if isinstance(given, Agent):
        return given
    if not isinstance(given, (Prompt, str)):
        raise _invalid(f"{name!r} must be an Agent or a Prompt, not {type(given).__name__}")
    if agent is None:
        raise InvalidOptionError(option="agent", reason=f"is needed: {name!r} is a prompt without an agent")
    own = agent.instructions
    if isinstance(given, str) and isinstance(own, Prompt):
        given = attrs.evolve(own, text=given, version=name, id=None)
    made: Agent[Any] = agent.clone(instructions=given)
    return made


def _invalid(reason: str) -> InvalidOptionError:
    return InvalidOptionError(option="variants", reason=reason)
