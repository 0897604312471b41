"""What the model that delegates is told: the answer, or why there is none."""

from __future__ import annotations

from typing import Any

from kantan_agents.agent import Agent
from kantan_agents.errors import DelegatedAgentError, KantanAgentsError
from kantan_agents.stages.trim_history import output_text

NO_ANSWER = "The agent has finished without an answer."


def answer_of(agent: Agent[Any], result: Any) -> str:
    """Return the answer of a child as the result of the tool call.

    Raises:
        DelegatedAgentError: E35, its run waits for an approval, which nobody can give it in here.
    """
    waiting = getattr(result, "interruptions", None)
    if waiting:
        tools = ", ".join(sorted({str(item.name) for item in waiting}))
        reason = f"a call of {tools} needs an approval, which a delegated run cannot wait for"
        raise DelegatedAgentError(agent=agent.name, reason=reason)
    return output_text(result) or NO_ANSWER


def failure_of(name: str, error: Exception) -> DelegatedAgentError:
    """Return the error that tells of a child's failure."""
    if isinstance(error, DelegatedAgentError):
        return error
    kind = "" if isinstance(error, KantanAgentsError) else f"{type(error).__name__}: "
    # What it says goes to a model, and half a character would make that request fail as well.
    reason = f"{kind}{_said_by(error)}".encode("utf-8", "replace").decode()
    failure = DelegatedAgentError(agent=name, reason=reason)
    failure.__cause__ = error
    return failure


def _said_by(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - of somebody's own class
        return "it cannot be told"
