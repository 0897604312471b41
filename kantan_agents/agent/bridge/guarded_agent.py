"""Applies the tool rules to plain SDK agents that a run can reach.

The SDK runs those very objects, so they are guarded in place: their class becomes a subclass that applies the
rules. Identity, type checks, ``clone`` and hooks see no difference.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from threading import Lock
from typing import Any

import agents
import attrs
from agents import FunctionTool, Handoff, RunContextWrapper, Tool

from kantan_agents.agent.bridge.wrap_models import observed, structured, unobserved
from kantan_agents.core.interception import active_agent, active_sdk_agent, pending_error
from kantan_agents.core.pipeline import Run, current_run
from kantan_agents.errors import InvalidOptionError
from kantan_agents.models.resolve import own_client_of
from kantan_agents.support.log import get_logger
from kantan_agents.tools.facts import facts_of_listed, servers_of, surround
from kantan_agents.tools.guards.approvals import with_approvals
from kantan_agents.tools.guards.executors import guard
from kantan_agents.tools.guards.functions import guard_function
from kantan_agents.tools.guards.guard import Rulebook
from kantan_agents.tools.listing import list_tools, resolve_each_turn
from kantan_agents.tools.mcp.failure_policy import MCPFailurePolicy
from kantan_agents.tools.mcp.served import list_servers
from kantan_agents.tools.mcp.server_connections import TENDED
from kantan_agents.tools.mcp.shown_names import handoff_names, named_tools
from kantan_agents.tools.offered import with_offered
from kantan_agents.tools.rules_in_force import NO_LAYERS, rules_in_force
from kantan_agents.tools.server_names import Surroundings, server_of
from kantan_agents.tools.unshown_tools import in_view

_MARK = "__kantan_guarded__"
_COPIES = "_kantan_guarded_tools"
LISTED = "_kantan_listed"
"""Attribute for each MCP server's known tools; copies lack it."""

CHILDREN = "_kantan_children"
"""Attribute for a delegating agent's children; copies lack it."""

_COPIES_KEPT = 1024
_LEFT_OUT = "_kantan_left_out"
_lock = Lock()
_log = get_logger("kantan_agents.tools")


class RuledAgent(agents.Agent[Any]):
    """Base class of all agents under the tool rules; ``validates_output``: a wrapper of its model does."""

    validates_output = False

    @property
    def model(self) -> Any:
        """Its model; in a run, wrapped (``models/ask_model.py``)."""
        # The SDK reads this property eight times a turn, so it must stay cheap.
        model, run = self.__dict__.get("model"), current_run.get()
        if run is None:
            return model
        # A wrapper refers to its agent, so no other agent has this id. Other values, such as a name, are
        # shared.
        known = run._observed.get(id(self)) if run._observed else None
        if known is not None and known[0] is model:
            return known[1]
        watched = run.events or run._capture or run._tape or run._journal or run.model_calls or run.sends_once
        known = run._observed[id(self)] = model, observed(model, self) if watched else structured(model)
        return known[1]

    @model.setter
    def model(self, model: Any) -> None:
        model = unobserved(model)
        self.__dict__["model"] = structured(model) if self.validates_output else model

    def guarded_tool(self, tool: Tool) -> Tool:
        """Return a guarded copy of a tool, the same each time."""
        # The SDK compares tools by identity when a run is resumed.
        copies: dict[int, tuple[Tool, Tool, dict[str, Any]]] = self.__dict__.setdefault(_COPIES, {})
        known = copies.get(id(tool))
        # The user may have changed the tool since.
        if known is not None and known[0] is tool and known[2] == vars(tool):
            return known[1]
        guarded = guard(tool, self.book)
        guard_nested(tool)
        if any(tool is own for own in self.tools):  # the SDK creates MCP tools anew each turn
            if len(copies) >= _COPIES_KEPT:  # the tools are replaced over and over
                copies.clear()
            copies[id(tool)] = (tool, guarded, dict(vars(tool)))
        return guarded

    @property
    def book(self) -> Rulebook | None:
        """The source of standing rules; None means the agent that was run."""
        return None

    @property
    def local_names(self) -> frozenset[str]:
        """Its tools' names in rules, without MCP servers' tools."""
        local = (tool for tool in self.tools if server_of(tool) is None)
        return frozenset(name for tool in local for name in facts_of_listed(tool).names)

    @property
    def server_names(self) -> frozenset[str]:
        """The names of its MCP servers, including hosted ones."""
        return servers_of(self.tools) | {server.name for server in self.mcp_servers}

    @property
    def shown_local_names(self) -> frozenset[str]:
        """The names shown for its tools and handoffs, without MCP servers' tools."""
        own = frozenset(getattr(tool, "qualified_name", tool.name) for tool in self.tools)
        return own | handoff_names(self)

    def mcp_failure_policy(self, run: Run | None) -> MCPFailurePolicy | None:
        """Return the policy for failing MCP servers; None leaves them to the SDK."""
        return getattr(run.agent, "on_mcp_failure", "raise") if run is not None else None

    async def get_mcp_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
        """Return the MCP servers' tools, without names that the agent itself has; raises E28 or E37."""
        if not self.mcp_servers:
            return []
        run = current_run.get()
        policy, inherited = self.mcp_failure_policy(run), super().get_mcp_tools
        is_changed = getattr(inherited, "__func__", None) is not agents.Agent.get_mcp_tools
        if policy is None or is_changed:  # in a subclass of the user
            tools = await inherited(run_context)
            surround(tools, self._surroundings(run, tools))
            return tools
        served = await list_servers(self, run_context, policy)
        prefixes = self.mcp_config.get("include_server_in_tool_names", False)

        def may_be_used(alike: Iterable[FunctionTool]) -> list[bool]:
            standing = getattr(run.agent, "standing_rules", NO_LAYERS) if run is not None else NO_LAYERS
            layers = rules_in_force(run_context.context, getattr(self.book, "standing_rules", standing))
            listed = list(alike)
            surround(listed, self._surroundings(run, listed))
            return [layers.decide_tool(facts_of_listed(tool)).allowed for tool in listed]

        made, ambiguous = named_tools(
            self,
            served,
            local=self.shown_local_names,
            reserved=await self._get_mcp_tool_reserved_names(run_context) if prefixes else (),
            may_be_used=may_be_used,
            left_out=self._note_left_out,
        )
        around = self._surroundings(run, made)
        if any(one.is_unknown for one in served):
            # The unknown server may have any tool, so a rule for a name must not apply to another server.
            ambiguous |= frozenset(tool.name for one in served for tool in one.tools)
        surround(made, attrs.evolve(around, local=around.local | ambiguous))
        return list(made)

    async def offered(self, run: Run | None, tools: list[Tool]) -> list[Tool]:
        """Return a turn's tools for the SDK; raises E75 or E93."""
        if run is not None and run._tape is not None:
            run._tape.check_offered(self.name, tools)  # before the SDK starts computers
        if run is None or not run.state:
            return tools
        return with_offered(run, await with_approvals(run, self.name, tools))

    def _surroundings(self, run: Run | None, tools: Iterable[Tool]) -> Surroundings:
        first = getattr(run.agent, "_sdk_agent", None) if run is not None else None
        local, servers = self.local_names, self.server_names | servers_of(tools)
        if isinstance(first, RuledAgent) and first is not self:
            # The run's rules are written for this agent.
            local, servers = local | first.local_names, servers | first.server_names
        return Surroundings(local, servers)

    def _note_left_out(self, names: Iterable[str]) -> None:
        known: set[str] = self.__dict__.setdefault(_LEFT_OUT, set())
        for name in sorted(set(names) - known):
            known.add(name)
            _log.warning("mcp_tool_left_out", tool=name, reason="the agent has a tool of this name")


class GuardedAgent(RuledAgent):
    """Mixin for plain SDK agents: the rules hide and block tools."""

    async def get_all_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
        """Return the guarded tools the model may see now."""
        run = current_run.get()
        if run is None and not _carries_rules(run_context.context):
            return await super().get_all_tools(run_context)
        violation = pending_error(run)
        if violation is not None:
            raise violation
        active_agent.set(self.name)
        active_sdk_agent.set(self)
        in_view.set(None)
        guard_reachable(self)
        tools = [self.guarded_tool(tool) for tool in await super().get_all_tools(run_context)]
        standing = run.agent.standing_rules if run is not None else NO_LAYERS
        layers = rules_in_force(run_context.context, standing)
        tools = await resolve_each_turn(self, run_context, tools, layers)
        return await self.offered(run, list_tools(run_context, tools, layers, None))

    def __reduce_ex__(self, protocol: Any) -> Any:
        # Copies and unpickled agents cannot import a class created at run time, so they create it again.
        reduced: Any = super().__reduce_ex__(protocol)
        _, (_, *args), state, *rest = reduced
        if isinstance(state, dict):
            left_out = (_COPIES, CHILDREN, LISTED, TENDED)
            state = {name: value for name, value in state.items() if name not in left_out}
        return (_blank, (type(self).__bases__[1], *args), state, *rest)


def _blank(kind: Any, *args: Any) -> Any:
    guarded = _guarded_class(kind)
    return guarded.__new__(guarded, *args)


def _carries_rules(context: Any) -> bool:
    # The SDK's own runner may have started an Agent that handed over to this one.
    rules = context.get("tool_rules") if isinstance(context, dict) else None
    return isinstance(rules, dict) and bool(rules) and rules.keys() <= {"allow", "deny", "params"}


@functools.lru_cache(maxsize=256)
def _guarded_class(kind: Any) -> Any:
    # The SDK identifies an agent by these names when it stores a run.
    names = {"__slots__": (), "__module__": kind.__module__, "__qualname__": kind.__qualname__}
    return type(kind.__name__, (GuardedAgent, kind), names)


def guard_agent(agent: Any) -> None:
    """Guard a plain SDK agent and all that it reaches; E75 if its class forbids subclasses."""
    waiting, seen = [agent], set()
    while waiting:
        reached = waiting.pop()
        if id(reached) in seen or not isinstance(reached, agents.Agent):
            continue
        seen.add(id(reached))
        with _lock:
            if not isinstance(reached, RuledAgent):
                try:
                    kind: Any = type(reached)
                    reached.__class__ = _guarded_class(kind)
                except TypeError as error:
                    reason = (
                        f"agent {reached.name!r} of class {type(reached).__name__} cannot be guarded: {error}"
                    )
                    raise InvalidOptionError(option="handoffs", reason=reason) from error
                own_client_of(reached.model)
        waiting += _targets(reached)


def guard_reachable(agent: agents.Agent[Any]) -> None:
    """Guard an agent's targets, once a turn; each guards its own in turn."""
    for target in _targets(agent):
        if target is not None and not isinstance(target, RuledAgent):
            guard_agent(target)


def guard_nested(tool: Any) -> None:
    """Guard the SDK agent behind a tool, if any."""
    nested = getattr(tool, "_agent_instance", None)
    if nested is not None:
        guard_agent(nested)


def guard_handoff(handoff: Handoff[Any, Any]) -> None:
    """Make a handoff guard its target. In place, as the SDK may hold the object."""
    invoke = handoff.on_invoke_handoff
    if hasattr(invoke, _MARK):
        return

    @functools.wraps(invoke)
    async def guarded_invoke(context: RunContextWrapper[Any], arguments: str) -> Any:
        target = await invoke(context, arguments)
        guard_agent(target)
        return target

    setattr(guarded_invoke, _MARK, True)
    handoff.on_invoke_handoff = guarded_invoke


def _targets(agent: agents.Agent[Any]) -> list[Any]:
    targets: list[Any] = []
    for handoff in agent.handoffs:
        if isinstance(handoff, Handoff):
            guard_handoff(handoff)
            known = getattr(handoff, "_agent_ref", None)
            targets.append(known() if known is not None else None)
        else:
            targets.append(handoff)
    targets += [getattr(tool, "_agent_instance", None) for tool in agent.tools]
    return targets


def guarded_mcp_tools(tools: list[Tool], owner: Any) -> list[Tool]:
    """Return MCP tools, guarded for ``owner``."""
    return [guard_function(tool, owner) if isinstance(tool, FunctionTool) else tool for tool in tools]
