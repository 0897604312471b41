"""Finds the judge that ``--judge`` names."""

from __future__ import annotations

from typing import Any

from kantan_agents.agent import Agent
from kantan_agents.cli.eval.read_evaluators import read_evaluators
from kantan_agents.cli.terminal.load_object import load_object
from kantan_agents.errors import InvalidOptionError

_OPTION = "--judge"


def read_judge(what: str, agent: Agent[Any], model: str | None) -> Any:
    """Return what ``improve`` takes as a judge.

    Args:
        what: An evaluator as for ``eval run``, or ``MODULE:NAME``, which may be an agent as well.
        agent: The agent whose prompt ``judged`` judges by.
        model: The model of ``judged``; None for that of the agent.

    Raises:
        InvalidOptionError: E75, there is no such judge.
    """
    if model is not None and what.rpartition("=")[2] != "judged":
        raise InvalidOptionError(option="--judge-model", reason=f"is for {_OPTION} judged, not for {what!r}")
    try:
        evaluators = read_evaluators([what], agent, model)
    except InvalidOptionError as error:
        found = _agent(what)
        if found is not None:
            return found
        option = _OPTION if error.option == "--evaluator" else error.option
        reason = error.reason.replace("--evaluator", _OPTION)
        raise InvalidOptionError(option=option, reason=reason) from error
    return evaluators[0]


def _agent(what: str) -> Agent[Any] | None:
    module, mark, _ = what.partition(":")
    if not mark or not module.replace(".", "").isidentifier():
        return None
    try:
        found = load_object(what, _OPTION, "app.agents:critic")
    except InvalidOptionError:
        return None
    return found if isinstance(found, Agent) else None
