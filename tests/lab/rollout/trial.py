"""An agent under a rollout, whose model answers with its instructions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kantan_agents import Agent, Prompt, Rollout
from kantan_agents.testing import ScriptedModel

V1 = Prompt("support", "v1", "Be brief.")
V2 = Prompt("support", "v2", "Be kind.")
ARMS = {"v1": V1, "v2": V2}


def echo() -> ScriptedModel:
    """Return a model that answers with its instructions."""
    return ScriptedModel(lambda call: call.system_instructions or "")


def rollout(store: Path | None = None, arms: Any = None, **options: Any) -> Rollout:
    """Return a rollout of two arms, half and half."""
    given: dict[str, Any] = {"unit": "user.id", "ramp": (0.5, 1), **options}
    return Rollout(ARMS if arms is None else arms, store=store, **given)


def support(choice: Rollout, **options: Any) -> Agent[Any]:
    """Return an agent under a rollout."""
    return Agent("support", choice, **{"model": echo(), **options})


def user(number: object) -> dict[str, Any]:
    """Return the context of a user."""
    return {"user": {"id": number}}


def drawn(agent: Any, context: dict[str, Any]) -> Any:
    """Return what a run with this context would have now: an arm, its agent and its metadata."""
    return agent._choose("", context)


def shared_of(agent: Any) -> Any:
    """Return the state of the agent's rollout in this process."""
    return agent._choose._shared
