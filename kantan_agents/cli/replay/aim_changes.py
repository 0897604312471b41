"""Decides which agents the changes of ``kantan-agents replay cohort`` are made to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kantan_agents.agent import Agent
from kantan_agents.agent.running.portal import background_loop
from kantan_agents.errors import InvalidOptionError

if TYPE_CHECKING:
    from kantan_agents.lab.replay import Change


def aim_changes(
    changes: Sequence[Change], agent: Agent[Any], *, of: str | None, prompt: str | None
) -> list[Change]:
    """Return the changes, each for the agents that it is meant for.

    Args:
        changes: The changes.
        agent: The agent that is run.
        of: Name of the agent to change; None for those with the prompt.
        prompt: Name of the prompt by which the runs are selected; None to change the agent that is run.

    Raises:
        InvalidOptionError: E75, no agent that the run can reach has the prompt.
    """
    names = [of] if of is not None else [agent.name] if prompt is None else _with_prompt(agent, prompt)
    aimed: list[Change] = []
    for change in changes:
        if change.run_rules is not None:
            aimed.append(change)
        else:
            aimed += [change if name == agent.name else change.of(name) for name in names]
    return aimed


def _with_prompt(agent: Agent[Any], prompt: str) -> list[str]:
    from kantan_agents.lab.replay.reached import Reached

    names = background_loop.run(lambda: Reached.from_agent(agent)).with_prompt(prompt)
    if not names:
        reason = (
            f"no agent that {agent.name!r} reaches has the prompt {prompt!r} now; name the agent with --of"
        )
        raise InvalidOptionError(option="--prompt", reason=reason)
    return sorted(names)
