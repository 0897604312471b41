"""Applies changes to copies of agents."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import attrs
from agents import Model

from kantan_agents.agent import Agent
from kantan_agents.agent.delegation.altered_tool import child_of_tool, with_children
from kantan_agents.core.prompt import Prompt
from kantan_agents.errors import (
    InvalidChangeError,
    KantanAgentsError,
    ModelNotConfiguredError,
    ModelNotFoundError,
    NoChangeError,
)
from kantan_agents.lab.experiment.identity import plain
from kantan_agents.lab.experiment.reached import Reached
from kantan_agents.lab.replay.agent_copies import AgentCopies
from kantan_agents.lab.replay.change import Change
from kantan_agents.models.origin import origin_of
from kantan_agents.support.nearest import nearest
from kantan_agents.traces.capture.canonical import content_hash, decode


@attrs.frozen
class ChangedPart:
    """An agent before and after a change; a sample if a delegation would create it."""

    change: Change
    before: Agent[Any]
    after: Agent[Any]


@attrs.frozen
class ChangedAgent:
    """A changed copy of an agent and of the agents that it reaches."""

    agent: Agent[Any]
    parts: Sequence[ChangedPart]


def changed_agent(reached: Reached, changes: Sequence[Change]) -> ChangedAgent:
    """Return a changed copy of an agent, the given agents unchanged; E19, E94 or E95 if impossible."""
    if not changes:
        raise InvalidChangeError(change="the agent", reason="give at least one change")
    start = reached.start
    keys = [(change.what, change.agent or start.name) for change in changes]
    changed: dict[int, Agent[Any]] = {}
    parts: list[ChangedPart] = []
    for number, change in enumerate(changes):
        if keys[number] in keys[:number]:
            raise InvalidChangeError(change=_place(change), reason="it is given twice")
        found = _changed_agents(reached, change, changed)
        children = _changed_children(reached, change, parts)
        if not found and not children:
            raise InvalidChangeError(change=_place(change), reason=_not_reached(reached, str(change.agent)))
        made = [one for one in (*found, *children) if isinstance(one, ChangedPart)]
        if not made:
            raise next(one for one in (*found, *children) if isinstance(one, NoChangeError))
        parts += made
    alter = partial(_altered, [change for change in changes if change.agent is not None])
    has_children = any(
        _is_named(part.change, one.name) for part in parts for *_, one in reached.delegations()
    )
    copies = AgentCopies(reached, changed, alter if has_children else _same, changes[0].what)
    return ChangedAgent(copies.start(), tuple(parts))


def _changed_agents(
    reached: Reached, change: Change, changed: dict[int, Agent[Any]]
) -> list[ChangedPart | NoChangeError]:
    found: list[ChangedPart | NoChangeError] = []
    for target in [reached.start] if change.agent is None else reached.named(change.agent):
        if not isinstance(target, Agent):
            reason = f"{target.name!r} is an agent of the SDK; make it an Agent of kantan_agents"
            raise InvalidChangeError(change=_place(change), reason=reason)
        part = _part(changed.get(id(target), target), change)
        found.append(part)
        if isinstance(part, ChangedPart):
            changed[id(target)] = part.after
    return found


def _changed_children(
    reached: Reached, change: Change, earlier: Sequence[ChangedPart]
) -> list[ChangedPart | NoChangeError]:
    """Apply a change to samples of the agents that delegations create."""
    found: list[ChangedPart | NoChangeError] = []
    for source, tool, definition in reached.delegations():
        if not _is_named(change, definition.name):
            continue
        parent = source.clone().sdk_agent if isinstance(source, Agent) else copy.copy(source)
        child = child_of_tool(tool, definition, parent)
        found.append(_part(_with_all(child, [part.change for part in earlier]), change))
    return found


def _part(agent: Agent[Any], change: Change) -> ChangedPart | NoChangeError:
    try:
        return ChangedPart(change, agent, _made(agent, change))
    except NoChangeError as error:
        return error


def _altered(changes: Sequence[Change], tool: Any) -> Any:
    return with_children(tool, lambda child: _with_all(child, changes))


def _with_all(child: Agent[Any], changes: Sequence[Change]) -> Agent[Any]:
    # NoChangeError: the child has inherited the change.
    for change in changes:
        if _is_named(change, child.name):
            with suppress(NoChangeError):
                child = _made(child, change)
    return child


def _same(tool: Any) -> Any:
    return tool


def _is_named(change: Change, name: str) -> bool:
    return change.agent == name


def _place(change: Change) -> str:
    return change.what if change.agent is None else f"{change.what} of {change.agent!r}"


def _not_reached(reached: Reached, name: str) -> str:
    names = sorted(reached.names())
    near = nearest(name, names)
    hint = f"; did you mean {near!r}?" if near is not None else ""
    listed = ", ".join(map(repr, names))
    return f"{reached.start.name!r} does not reach an agent of this name; it reaches {listed}{hint}"


def changes_of(changes: Change | Iterable[Change]) -> tuple[Change, ...]:
    """Return changes as a tuple; raise E94 if one is something else."""
    listed = (changes,) if isinstance(changes, Change) else tuple(changes)
    for one in listed:
        if not isinstance(one, Change):
            reason = f"it must be a Change, such as Change.model(...), not {one!r}"
            raise InvalidChangeError(change="the agent", reason=reason)
    return listed


def hash_of(agent: Agent[Any], changes: Sequence[Change], more: Any) -> str:
    """Return the identity of a replay; ``more`` is how its tools are answered."""
    own = agent.instructions
    parts = {
        "changes": [_identity(change) for change in changes],
        "agent": agent.name,
        "prompt": own.text if isinstance(own, Prompt) else own,
        "options": decode(agent.recorded_options),
        "more": more,
    }
    return content_hash(plain(parts))


def _identity(change: Change) -> list[Any]:
    # Experiments of earlier versions have no agent in their identity, and must be resumable.
    return [change.what, change.value, *(() if change.agent is None else (change.agent,))]


def _made(agent: Agent[Any], change: Change) -> Agent[Any]:
    try:
        changed = agent.clone(**change.options(agent))
        if change.what == "model":
            _check_model(agent, changed)
    except (ModelNotFoundError, ModelNotConfiguredError):
        raise
    except (InvalidChangeError, NoChangeError) as error:
        if change.agent is None:
            raise
        raise type(error)(change=_place(change), reason=error.reason) from error
    except KantanAgentsError as error:
        raise InvalidChangeError(change=_place(change), reason=str(error)) from error
    return changed


def _check_model(before: Agent[Any], after: Agent[Any]) -> None:
    if _same_model(before, after):
        raise NoChangeError(change="model", reason="it is the agent's model under another name")


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
