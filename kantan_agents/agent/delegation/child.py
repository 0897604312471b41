"""Builds the child agent for a delegating agent."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from threading import Lock
from typing import Any

import attrs
from agents import RunConfig, RunHooks, Usage
from cachetools import LRUCache

from kantan_agents.agent import Agent
from kantan_agents.agent.agent_options import OPTION_NAMES
from kantan_agents.agent.bridge import CHILDREN, config_for_delegated
from kantan_agents.agent.delegation.chain import Delegation
from kantan_agents.agent.delegation.parent import Parent
from kantan_agents.agent.from_definition import AgentFile, agent_from_file, is_from_file
from kantan_agents.core.pipeline import Next, Run, calls_next_last
from kantan_agents.errors import InvalidOptionError
from kantan_agents.subagent_files import AgentDefinition, model_of
from kantan_agents.tool_rules import RuleLayers
from kantan_agents.tools.retrieval.options import checked_retrieval
from kantan_agents.tools.skills import SkillLoader

_CACHE_SIZE = 64
_RUN_KEYS = ("result", "history")
# The file sets the identity and the parent the tools, so that a delegation can only narrow.
_FIXED_OPTIONS = frozenset(
    {
        "sdk_agent_options",
        "name",
        "instructions",
        "tools",
        "tool_providers",
        "mcp_servers",
        "handoffs",
    }
)

next_delegation: ContextVar[Delegation] = ContextVar("kantan_agents_delegation")


@calls_next_last
async def enter_delegation(run: Run, call_next: Next) -> None:
    """Outermost stage of a child: put the run under its ceiling before other stages act."""
    run.delegation = next_delegation.get()
    run.is_streamed = run.delegation.is_streamed
    await call_next(run)


class Children:
    """Builds child agents, cached per delegating agent, whose models and options these replace."""

    def __init__(self, models: Mapping[str, Any] | None, options: Mapping[str, Any]) -> None:
        self._models = models
        self._options = dict(options)
        self._change: Callable[[Agent], Agent] | None = None
        self._lock = Lock()

    def changed_by(self, change: Callable[[Agent], Agent]) -> Children:
        """Return a builder of the same children, changed."""
        changed = Children(self._models, self._options)
        changed._change = change
        return changed

    def child(self, definition: AgentDefinition, parent: Parent) -> Agent:
        """Return ``parent``'s child for a definition; raises as ``from_definition``."""
        run_agent = parent.run.agent if parent.run is not None else None
        key = (id(self), id(run_agent), id(definition))
        with self._lock:
            # Stored on the delegating agent and freed with it: services create agents per request.
            cache: LRUCache[Any, _CachedChild] = vars(parent.agent).setdefault(
                CHILDREN, LRUCache(maxsize=_CACHE_SIZE)
            )
            cached = cache.get(key)
        if cached is not None and cached.is_for(self, parent, definition):
            return cached.agent
        agent = self._build(definition, parent)
        with self._lock:
            cache[key] = _CachedChild(self, attrs.evolve(parent, run=None, context=None), definition, agent)
        return agent

    def _build(self, definition: AgentDefinition, parent: Parent) -> Agent:
        defaults = {"tool_providers": None, "history": 0, "mcp_config": None, "model_settings": None}
        options: dict[str, Any] = {**defaults, **parent.options, **self._options}
        models = options.pop("models", None)
        if self._models is not None:
            models = self._models
        if model_of(definition.model, models) is not None and "model_settings" not in self._options:
            options["model_settings"] = None  # the inherited settings are for the parent's model
        if options["mcp_config"] is None:
            del options["mcp_config"]
        # Not among the middleware, which a grandchild would inherit.
        outermost = (("delegation", enter_delegation),)
        file = AgentFile(definition, models, options.pop("skills", None), outermost)
        agent: Agent = agent_from_file(Agent, file, model=options.pop("model", None), options=options)
        # The parent's provider rules apply here too, and its limits through the ceiling.
        agent.standing_rules = RuleLayers(parent.standing.layers, agent.standing_rules.limits)
        return agent if self._change is None else self._change(agent)


@attrs.frozen(eq=False)
class _CachedChild:
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


def checked_child_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options for children, checked early: E75, or another error of ``Agent``."""
    known = OPTION_NAMES | {"skills"}
    for option, value in options.items():
        if option == "allow_env" and value is not False:
            reason = "cannot be set for delegated agents, whose files may come from anywhere"
            raise InvalidOptionError(option=option, reason=reason)
        if option in _FIXED_OPTIONS:
            reason = "is set by the agent's file and by the parent"
            raise InvalidOptionError(option=option, reason=reason)
        if option not in known:
            raise InvalidOptionError(option=option, reason="task_tool and Agent have no such option")
    # Fail now, before a model sees the error. The tools are unknown, so `tool_retrieval` cannot be checked.
    checked_retrieval(options.get("tool_retrieval"))
    skills = options.get("skills")
    if not isinstance(skills, SkillLoader | None):
        reason = f"must be a SkillLoader or None, not {type(skills).__name__}"
        raise InvalidOptionError(option="skills", reason=reason)
    tried = {name: value for name, value in options.items() if name not in ("tool_retrieval", "skills")}
    Agent("trial", "Try the options.", tool_providers=None, **tried)
    return dict(options)


def child_context(parent: Parent) -> dict[str, Any]:
    """Return a child's context: the parent's without its results.

    Values are shared, but tool rules are copied: changes must not reach the other side.
    """
    if not isinstance(parent.context, dict):
        return {}
    output = getattr(parent.run.agent, "output_dest", None) if parent.run is not None else None
    context = {
        key: value
        for key, value in parent.context.items()
        if key not in (*_RUN_KEYS, output) and not is_from_file(parent.run, key, value)
    }
    if "tool_rules" in context:
        context["tool_rules"] = copy.deepcopy(context["tool_rules"])
    return context


def child_config(parent: Parent, wrapper: Any) -> RunConfig | None:
    """Return the RunConfig for a child run."""
    return config_for_delegated(parent.run, getattr(wrapper, "run_config", None))


class UsageCollector(RunHooks[Any]):
    """Collects usage counters of a child run, one for each retry."""

    def __init__(self) -> None:
        self._counters: list[Usage] = []

    async def on_agent_start(self, context: Any, agent: Any) -> None:
        """Remember the usage counter of this attempt."""
        del agent
        usage = getattr(context, "usage", None)
        if isinstance(usage, Usage) and not any(usage is known for known in self._counters):
            self._counters.append(usage)

    def add_to(self, wrapper: Any) -> None:
        """Add the collected usage to the parent run."""
        total = getattr(wrapper, "usage", None)
        if isinstance(total, Usage):
            for usage in self._counters:
                total.add(usage)
