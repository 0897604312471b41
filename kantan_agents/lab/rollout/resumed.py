"""Finds the arm of a paused run that an agent without this rollout resumes."""

from __future__ import annotations

from typing import Any

from agents import RunState

from kantan_agents.agent.bridge.paused_runs import chosen_in
from kantan_agents.agent.running.chosen_arm import ChosenArm, for_states
from kantan_agents.lab.rollout.live.known import limits_of
from kantan_agents.traces.metadata import ARM, ROLLOUT


def chosen_for_state(state: RunState[Any, Any], agent: Any) -> ChosenArm | None:
    """Return the arm that a paused run has, with its limits; None if it has none.

    The run began with another agent, which has handed it over.

    Args:
        state: The state.
        agent: The Agent that resumes it.
    """
    recorded = chosen_in(state)
    name, arm = recorded.get(ROLLOUT), recorded.get(ARM)
    if not isinstance(name, str) or not isinstance(arm, str):
        return None
    return ChosenArm(agent, arm, recorded, limits_of(name, arm))


for_states.append(chosen_for_state)
