"""Agents of the SDK that a run of ours can reach: their tools obey the same rules.

Hand-offs and agents as tools lead the SDK to agents that are not ours, and it runs the very objects it
is led to. So they are guarded in place: their class becomes one that asks the rules whenever the SDK
asks for tools. Identity, type checks, ``clone`` and what hooks see stay as they are, and where there are
no rules, outside a run of ours, nothing changes at all.
"""

from __future__ import annotations

import functools
from threading import Lock
from typing import Any

import agents
from agents import FunctionTool, Handoff, RunContextWrapper, Tool

from kantan_agents.bridge.stand_ins import observed, structured, unobserved
from kantan_agents.errors import InvalidOptionError
from kantan_agents.interception import asking_agent
from kantan_agents.pipeline import current_run
from kantan_agents.tools import (
    NO_LAYERS,
    Rulebook,
    as_shown_now,
    guard,
    guard_function,
    list_tools,
    pending_violation,
    rules_in_force,
)
from kantan_agents.tools.guards.approvals import with_approvals
from kantan_agents.tools.not_in_view import in_view

_MARK = "__kantan_guarded__"
_COPIES = "_kantan_guarded_tools"
CHILDREN = "_kantan_children"
"""Where an agent that delegates keeps what was made for it: no part of what it is."""

_COPIES_KEPT = 1024
_lock = Lock()


class RuledAgent(agents.Agent[Any]):
    """An agent whose ``get_all_tools`` asks the rules: ours, and those that have been guarded.

    Attributes:
        gets_fitting_outputs: Whether its model is to answer with what fits its output type.
    """

    gets_fitting_outputs = False

    @property
    def model(self) -> Any:
        """Its model; in a run that is watched, what stands in for it."""
        # The SDK looks here eight times in a turn, so it asks for no more than it must.
        model, run = self.__dict__.get("model"), current_run.get()
        if run is None or (run.events is None and not run.model_calls):
            return model
        return observed(model, self.name)

    @model.setter
    def model(self, model: Any) -> None:
        model = unobserved(model)
        self.__dict__["model"] = structured(model) if self.gets_fitting_outputs else model

    def guarded_tool(self, tool: Tool) -> Tool:
        """Return a guarded copy of a tool of this agent, the same one each time."""
        # One copy for each tool: the SDK compares tools by identity when a run is resumed.
        copies: dict[int, tuple[Tool, Tool, dict[str, Any]]] = self.__dict__.setdefault(_COPIES, {})
        known = copies.get(id(tool))
        # The user may have changed the tool since: an approval that is needed now, another name.
        if known is not None and known[0] is tool and known[2] == vars(tool):
            return known[1]
        guarded = guard(tool, self.book)
        guard_nested(tool)
        if any(tool is own for own in self.tools):  # those of MCP servers are new each time
            if len(copies) >= _COPIES_KEPT:  # tools that were exchanged again and again
                copies.clear()
            copies[id(tool)] = (tool, guarded, dict(vars(tool)))
        return guarded

    @property
    def book(self) -> Rulebook | None:
        """Whose rules lie beneath the explicit ones; None for those of the agent that was run."""
        return None


class GuardedAgent(RuledAgent):
    """Mixed into the class of an SDK agent: what the model is shown and may call is up to the rules."""

    async def get_all_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
        """Return the tools the model may see now, each guarded."""
        run = current_run.get()
        if run is None and not _carries_rules(run_context.context):
            return await super().get_all_tools(run_context)
        violation = pending_violation(run)
        if violation is not None:
            raise violation
        asking_agent.set(self.name)
        in_view.set(None)
        guard_reachable(self)
        tools = [self.guarded_tool(tool) for tool in await super().get_all_tools(run_context)]
        standing = run.agent.standing_rules if run is not None else NO_LAYERS
        layers = rules_in_force(run_context.context, standing)
        tools = await as_shown_now(self, run_context, tools, layers)
        return await with_approvals(run, self.name, list_tools(run_context, tools, layers, None))

    def __reduce_ex__(self, protocol: Any) -> Any:
        # The class was made here and cannot be found by its name: a copy, or what comes out of a pickle,
        # gets it again.
        reduced: Any = super().__reduce_ex__(protocol)
        _, (_, *args), state, *rest = reduced
        if isinstance(state, dict):
            state = {name: value for name, value in state.items() if name not in (_COPIES, CHILDREN)}
        return (_blank, (type(self).__bases__[1], *args), state, *rest)


def _blank(kind: Any, *args: Any) -> Any:
    guarded = _guarded_class(kind)
    return guarded.__new__(guarded, *args)


def _carries_rules(context: Any) -> bool:
    # The SDK's own runner may have been given one of our agents, which then handed over.
    rules = context.get("tool_rules") if isinstance(context, dict) else None
    return isinstance(rules, dict) and bool(rules) and rules.keys() <= {"allow", "deny", "params"}


@functools.lru_cache(maxsize=256)
def _guarded_class(kind: Any) -> Any:
    # The names stay: the SDK identifies an agent by them when a run is stored.
    names = {"__slots__": (), "__module__": kind.__module__, "__qualname__": kind.__qualname__}
    return type(kind.__name__, (GuardedAgent, kind), names)


def guard_agent(agent: Any) -> None:
    """Guard an agent of the SDK in place, and every agent that can be reached from it.

    Raises:
        InvalidOptionError: E75, its class cannot be extended, so its tools could not be ruled.
    """
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
        waiting += _targets(reached)


def guard_reachable(agent: agents.Agent[Any]) -> None:
    """Guard the agents an SDK agent can hand over to, or has as tools; asked for each turn.

    Those that are guarded see to their own targets when it is their turn.
    """
    for target in _targets(agent):
        if target is not None and not isinstance(target, RuledAgent):
            guard_agent(target)


def guard_nested(tool: Any) -> None:
    """Guard the agent of the SDK that a tool runs, if it runs one."""
    nested = getattr(tool, "_agent_instance", None)
    if nested is not None:
        guard_agent(nested)


def guard_handoff(handoff: Handoff[Any, Any]) -> None:
    """See to it that whatever agent a hand-off leads to is guarded; in place, as the SDK may hold it."""
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
    """Return tools of MCP servers guarded for the agent they belong to."""
    return [guard_function(tool, owner) if isinstance(tool, FunctionTool) else tool for tool in tools]
