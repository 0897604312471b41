"""Makes changes to a copy of an agent, and identifies changed agents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agents import Model

from kantan_agents.agent import Agent
from kantan_agents.capture.canonical import content_hash, decode
from kantan_agents.errors import (
    InvalidChangeError,
    KantanAgentsError,
    ModelNotConfiguredError,
    ModelNotFoundError,
    NoChangeError,
)
from kantan_agents.models import origin_of
from kantan_agents.prompt import Prompt
from kantan_agents.replay.change import Change, plain


def changed_agent(agent: Agent[Any], changes: Sequence[Change]) -> Agent[Any]:
    """Return a copy of an agent with all changes made.

    Raises:
        InvalidChangeError: E94, there is no change, two change the same, or one cannot be made.
        NoChangeError: E95, one changes nothing.
        ModelNotFoundError: E19, the model is unknown.
    """
    if not changes:
        raise InvalidChangeError(change="the agent", reason="give at least one change")
    for number, change in enumerate(changes):
        if any(change.what == other.what for other in changes[:number]):
            raise InvalidChangeError(change=change.what, reason="it is given twice")
    for change in changes:
        changed = _made(agent, change)
        if change.what == "model" and _same_model(agent, changed):
            raise NoChangeError(change="model", reason="it is the agent's model under another name")
        agent = changed
    return agent


def changes_of(changes: Change | Iterable[Change]) -> tuple[Change, ...]:
    """Return changes as a tuple.

    Raises:
        InvalidChangeError: E94, one of them is something else.
    """
    listed = (changes,) if isinstance(changes, Change) else tuple(changes)
    for one in listed:
        if not isinstance(one, Change):
            reason = f"it must be a Change, such as Change.model(...), not {one!r}"
            raise InvalidChangeError(change="the agent", reason=reason)
    return listed


def hash_of(agent: Agent[Any], changes: Sequence[Change], more: Any) -> str:
    """Return what identifies a replay: its changes, the changed agent, and how its tools are answered."""
    own = agent.instructions
    parts = {
        "changes": [[change.what, change.value] for change in changes],
        "agent": agent.name,
        "prompt": own.text if isinstance(own, Prompt) else own,
        "options": decode(agent.recorded_options),
        "more": more,
    }
    return content_hash(plain(parts))


def _made(agent: Agent[Any], change: Change) -> Agent[Any]:
    options = change.options(agent)
    if not options:
        return agent.clone()
    try:
        return agent.clone(**options)
    except (ModelNotFoundError, ModelNotConfiguredError):
        raise
    except KantanAgentsError as error:
        raise InvalidChangeError(change=change.what, reason=str(error)) from error


def _same_model(before: Agent[Any], after: Agent[Any]) -> bool:
    origins = []
    for agent in (before, after):
        model = agent.sdk_agent.model
        if not isinstance(model, Model):
            return False
        try:
            origins.append(origin_of(model))
        except (KantanAgentsError, RuntimeError):  # no key, or no event loop, so no client yet
            return False
    one, other = origins
    # Models of other classes have no URL: two of one class may still answer differently.
    return one == other and one.base_url.startswith("http")
