"""The agent that works for another one: made from its file, with the configuration of who delegates."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from contextvars import ContextVar
from threading import Lock
from typing import Any

import attrs
from agents import RunConfig
from cachetools import LRUCache

from kantan_agents.agent import Agent
from kantan_agents.agent.from_definition import is_from_file
from kantan_agents.agent.options import checked_items
from kantan_agents.bridge import CHILDREN, config_for_delegated
from kantan_agents.definitions import AgentDefinition, model_of
from kantan_agents.delegation.chain import Delegation
from kantan_agents.delegation.parent import Parent
from kantan_agents.pipeline import Next, Run, calls_next_last
from kantan_agents.tool_rules import RuleLayers

_KEPT = 64
_OF_THE_RUN = ("result", "history")

beginning: ContextVar[Delegation] = ContextVar("kantan_agents_delegation")
"""The delegation that the next run of a child in this task belongs to."""


@calls_next_last
async def enter_delegation(run: Run, call_next: Next) -> None:
    """Outermost stage of a child's run: before anything else is done it stands beneath its ceiling."""
    run.delegation = beginning.get()
    run.is_streamed = run.delegation.is_streamed
    await call_next(run)


class Children:
    """Makes agents from definitions, once for each agent that delegates.

    Args:
        models: What short names of models stand for; None takes over those of the agent that delegates.
        options: Options for all of them, instead of those of the agent that delegates.
    """

    def __init__(self, models: Mapping[str, Any] | None, options: Mapping[str, Any]) -> None:
        self._models = models
        self._options = dict(options)
        self._lock = Lock()

    def child(self, definition: AgentDefinition, parent: Parent) -> Agent:
        """Return the agent for a definition that works for ``parent``.

        Raises:
            KantanAgentsError: As ``Agent.from_definition``.
        """
        run_agent = parent.run.agent if parent.run is not None else None
        key = (id(self), id(run_agent), id(definition))
        with self._lock:
            # On the agent that delegates, so that they go with it: services make agents for each request.
            made: LRUCache[Any, _Made] = vars(parent.agent).setdefault(CHILDREN, LRUCache(maxsize=_KEPT))
            known = made.get(key)
        if known is not None and known.is_for(self, parent, definition):
            return known.agent
        agent = self._make(definition, parent)
        with self._lock:
            made[key] = _Made(self, attrs.evolve(parent, run=None, context=None), definition, agent)
        return agent

    def _make(self, definition: AgentDefinition, parent: Parent) -> Agent:
        inherited = dict(parent.options)
        models = inherited.pop("models", None) if self._models is None else self._models
        inherited.pop("models", None)
        defaults = {"tool_providers": None, "history": 0, "mcp_config": None, "model_settings": None}
        options: dict[str, Any] = {**defaults, **inherited, **self._options}
        if model_of(definition.model, models) is not None and "model_settings" not in self._options:
            options["model_settings"] = None  # they are those of the other model
        for option in ("mcp_config", "model_settings"):
            if options[option] is None:
                del options[option]
        middleware = checked_items("middleware", options.pop("middleware", None))
        entered = [("delegation", enter_delegation), *middleware]
        agent = Agent.from_definition(definition, models=models, middleware=entered, **options)
        agent.inherited["middleware"] = middleware  # whom it delegates to enters by a delegation of its own
        # What providers allow the agent above is no less allowed here; its limits lie above in any case.
        agent.standing_rules = RuleLayers(parent.standing.layers, agent.standing_rules.limits)
        return agent


@attrs.frozen(eq=False)
class _Made:
    by: Children
    parent: Parent
    definition: AgentDefinition
    agent: Agent

    def is_for(self, by: Children, parent: Parent, definition: AgentDefinition) -> bool:
        then, now = self.parent, parent
        return (
            self.by is by
            and then.agent is now.agent
            and self.definition is definition
            and then.standing is now.standing
            and then.options.keys() == now.options.keys()
            and all(_same(value, now.options[name]) for name, value in then.options.items())
        )


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))
    return one is other


def child_context(parent: Parent) -> dict[str, Any]:
    """Return a context of its own for a run that works for ``parent``: what that one's has but its results.

    Values are shared, as whoever put a connection there expects; the rules are copied, so that a change in
    one of the two does not reach the other. Those above hold in any case. What is there only because the
    file of the agent above says so stays there.
    """
    if not isinstance(parent.context, dict):
        return {}
    output = getattr(parent.run.agent, "output_dest", None) if parent.run is not None else None
    context = {
        key: value
        for key, value in parent.context.items()
        if key not in (*_OF_THE_RUN, output) and not is_from_file(parent.run, key, value)
    }
    if "tool_rules" in context:
        context["tool_rules"] = copy.deepcopy(context["tool_rules"])
    return context


def child_config(parent: Parent, wrapper: Any) -> RunConfig | None:
    """Return the RunConfig for a run that works for ``parent``."""
    return config_for_delegated(parent.run, getattr(wrapper, "run_config", None))
