"""How an Agent of ours looks to the SDK: an ``agents.Agent`` made once and never per run.

The SDK walks every tool, string and dataclass that hangs on an agent twice a run, to give it an
identity. So what is heavy stays off it: instructions come through the public ``get_system_prompt``,
plain function tools through the public ``get_all_tools``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, cast

from agents import FunctionTool, RunContextWrapper, Tool

from kantan_agents.bridge.guarded_agent import RuledAgent, guard_reachable, guarded_mcp_tools
from kantan_agents.bridge.making import made_quickly
from kantan_agents.bridge.own_tools import OwnTools
from kantan_agents.bridge.settings import QuickSettings
from kantan_agents.errors import InvalidOptionError
from kantan_agents.interception import asking_agent
from kantan_agents.pipeline import current_run
from kantan_agents.retrieval import ToolRetrieval
from kantan_agents.retrieval.for_agent import shelf_for
from kantan_agents.retrieval.index import ToolShelf
from kantan_agents.retrieval.provider_search import to_be_loaded_later
from kantan_agents.structured import AgentOutput
from kantan_agents.tool_rules import RuleLayers
from kantan_agents.tools import (
    Rulebook,
    RuleViolationPolicy,
    as_shown_now,
    facts_of,
    list_none,
    list_tools,
    pending_violation,
    rules_in_force,
)
from kantan_agents.tools.guards.approvals import with_approvals
from kantan_agents.tools.not_in_view import in_view
from kantan_agents.tracing.spans import record_metadata


class Owner(Protocol):
    """What an SDK agent asks of the Agent it stands for."""

    @property
    def standing_rules(self) -> RuleLayers:
        """The rules beneath those of a run's context."""
        ...

    @property
    def on_rule_violation(self) -> RuleViolationPolicy:
        """What happens when the rules refuse a call."""
        ...

    async def render(self, context: dict[str, Any]) -> str:
        """Return the instructions for this context."""
        ...

    @property
    def sdk_agent(self) -> SDKAgent:
        """Return its SDK agent with hand-offs brought up to date."""
        ...

    def trace_metadata(self, context: dict[str, Any], run_id: str) -> dict[str, Any]:
        """Return the complete trace metadata of a run of this agent."""
        ...


class SDKAgent(RuledAgent):
    """The SDK's view of an Agent; ``agent.sdk_agent`` returns it.

    It is an ordinary ``agents.Agent`` to the SDK and to users: it can be handed to ``Runner.run``, be a
    hand-off target of SDK agents or become a tool, and renders its instructions from the run context.

    Attributes:
        owner: The Agent it stands for.
    """

    owner: Owner
    _own_tools: OwnTools
    _holds = True  # whether it has those of its own tools that do not stand on it
    _shelf: ToolShelf | None = None

    @classmethod
    def make(
        cls, owner: Owner, tools: Sequence[Tool], retrieval: ToolRetrieval | None = None, **options: Any
    ) -> SDKAgent:
        """Return the SDK agent for ``owner``; ``options`` are those of ``agents.Agent``."""
        if retrieval is not None and retrieval.provider_search:
            tools, retrieval = to_be_loaded_later(tools, retrieval), None
        prefixed_mcp_names = (options.get("mcp_config") or {}).get("include_server_in_tool_names")
        own = OwnTools(tools, owner, holds=not prefixed_mcp_names)
        agent = made_quickly(cls, options) or cls(**options)
        agent.tools = own.inside
        agent.owner = owner
        if isinstance(agent.output_type, AgentOutput):
            agent.gets_fitting_outputs = True
            agent.model = agent.model
        agent.model_settings = QuickSettings.adopt(agent.model_settings)
        agent._own_tools = own
        if retrieval is not None:
            if prefixed_mcp_names:  # the SDK then has to see all names at once
                reason = "cannot be used with mcp_config include_server_in_tool_names"
                raise InvalidOptionError(option="tool_retrieval", reason=reason)
            agent._shelf = shelf_for(retrieval, own.held, agent.tools, owner)
        return agent

    @property
    def book(self) -> Rulebook | None:
        """The Agent: its base and provider rules lie beneath the explicit ones."""
        return self.owner

    @property
    def shelf(self) -> ToolShelf | None:
        """What its tools are chosen from; None if it shows them all."""
        return self._shelf

    @property
    def _held(self) -> Sequence[FunctionTool]:
        return self._own_tools.held if self._holds else ()

    @property
    def given_tools(self) -> list[Tool]:
        """The tools it has, as they were given, without our guards."""
        own = self._own_tools
        return [own.as_given(tool) for tool in own.in_order([*self._held, *self.tools], others_first=False)]

    def tool_named(self, name: Any) -> Tool | None:
        """Return the tool of its own, guarded, that goes by this name; None if there is none."""
        own = (*self._held, *self.tools)
        return next((tool for tool in own if isinstance(name, str) and name in facts_of(tool).names), None)

    def clone(self, **changes: Any) -> SDKAgent:
        """Copy the agent as the SDK does, the tools it holds included."""
        copied = cast("SDKAgent", super().clone(**changes))
        copied.owner = self.owner
        copied.gets_fitting_outputs = isinstance(copied.output_type, AgentOutput)
        copied.model = copied.model
        copied._own_tools = self._own_tools
        copied._holds = self._holds and "tools" not in changes
        copied._shelf = None if "tools" in changes else self._shelf
        return copied

    async def get_system_prompt(self, run_context: RunContextWrapper[Any]) -> str | None:
        """Return the rendered instructions; the SDK asks once a turn."""
        if self.instructions is not None:  # only a clone has its own
            return await super().get_system_prompt(run_context)
        context = run_context.context if isinstance(run_context.context, dict) else {}
        run = current_run.get()
        if run is None:
            return await self.owner.render(context)
        if run.agent is self.owner:
            run.turns += 1
            # A tool may have changed the context since the stage rendered it for the first turn. What
            # another stage has put in place of the rendering holds for all turns.
            if run.instructions is None or (run.turns > 1 and run.instructions is run.rendered):
                run.instructions = run.rendered = await self.owner.render(context)
            return run.instructions
        # A hand-off target or an agent as a tool: its prompt belongs into the record as well.
        recorded = run.state.setdefault(_RECORDED, set())
        if id(self) not in recorded:
            recorded.add(id(self))
            record_metadata(run, self.owner.trace_metadata(context, run.id))
        return await self.owner.render(context)

    async def get_all_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
        """Return the tools the model may see now: enabled, and permitted by the rules in force."""
        violation = pending_violation(current_run.get())
        if violation is not None:  # raised where the SDK made a text of it
            raise violation
        asking_agent.set(self.name)
        # Whoever runs this agent, and however it was reached: the SDK asks for the tools first.
        _ = self.owner.sdk_agent
        if self.handoffs:
            guard_reachable(self)  # somebody may have put more of them onto this very object
        in_view.set(None)
        shelf = self._shelf
        own = self._own_tools
        has_held = self._holds and own.holds_any
        if not (has_held or self.tools or self.mcp_servers):
            # Rules that cannot be read end the run here as well: who is next may be one that nobody guards.
            rules_in_force(run_context.context, self.owner.standing_rules)
            return list_none(run_context)
        tools: list[Tool] = own.switched_on if has_held and shelf is None else []
        if self.tools or self.mcp_servers:
            # One that somebody has put into `Agent.tools` since is not guarded yet.
            tools += [
                tool if own.has(tool) else self.guarded_tool(tool)
                for tool in await super().get_all_tools(run_context)
            ]
            tools = own.in_order(tools, others_first=True)
        layers = rules_in_force(run_context.context, self.owner.standing_rules)
        if shelf is not None:  # at the end, where alone they may become more
            tools += await shelf.tools_now(run_context, layers, _tool_choice(self))
        tools = await as_shown_now(self, run_context, tools, layers)
        asking = shelf.asking(run_context, layers) if shelf is not None else ()
        tools = list_tools(run_context, tools, layers, self.owner, asking)
        return await with_approvals(current_run.get(), self.name, tools)

    async def get_mcp_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
        """Return the tools of the MCP servers, guarded; the SDK makes them anew for each turn."""
        tools = await super().get_mcp_tools(run_context)
        if self._shelf is not None:  # beside a tool in view the SDK would take the agent's own
            tools = self._shelf.without_namesakes(tools)
        return guarded_mcp_tools(tools, self.owner)


_RECORDED = object()


def _tool_choice(agent: SDKAgent) -> Any:
    """Return what the model is told to call; that of the run's configuration wins, as in the SDK."""
    run = current_run.get()
    of_run = getattr(getattr(run, "run_config", None), "model_settings", None)
    return getattr(of_run, "tool_choice", None) or agent.model_settings.tool_choice
