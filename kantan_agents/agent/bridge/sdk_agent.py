"""The ``agents.Agent`` that represents an Agent to the SDK; created once, not per run.

The SDK walks every value on it twice a run, so it holds no large ones, such as instructions.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Protocol, cast

from agents import FunctionTool, HostedMCPTool, RunContextWrapper, Tool

from kantan_agents.agent.bridge.guarded_agent import LISTED, RuledAgent, guard_reachable, guarded_mcp_tools
from kantan_agents.agent.bridge.named_tools import check_named_tools
from kantan_agents.agent.bridge.own_tools import OwnTools
from kantan_agents.agent.bridge.quick_agents import QuickSettings, build_quickly
from kantan_agents.agent.bridge.rule_names import check_rule_names
from kantan_agents.agent.bridge.tested_versions import log_untested_versions
from kantan_agents.core.interception import (
    Layers,
    active_agent,
    active_sdk_agent,
    pending_error,
    redacted_data,
)
from kantan_agents.core.pipeline import Run, current_run
from kantan_agents.models.structured import AgentOutput
from kantan_agents.tool_rules import RuleLayers, ToolFacts
from kantan_agents.tools.facts import facts_of, facts_of_listed
from kantan_agents.tools.guards.guard import Rulebook
from kantan_agents.tools.guards.violations import RuleViolationPolicy
from kantan_agents.tools.listing import list_none, list_tools, resolve_each_turn
from kantan_agents.tools.mcp.failure_policy import MCPFailurePolicy
from kantan_agents.tools.retrieval import ToolRetrieval
from kantan_agents.tools.retrieval.find_tools import index_for_agent
from kantan_agents.tools.retrieval.index import AgentToolIndex
from kantan_agents.tools.retrieval.provider_search import (
    defer_loading_of,
    defer_loading_of_served,
    with_search_tool,
)
from kantan_agents.tools.retrieval.served import ServedToolIndexes
from kantan_agents.tools.rules_in_force import rules_of_run
from kantan_agents.tools.server_names import server_of
from kantan_agents.tools.unshown_tools import in_view
from kantan_agents.traces.spans import record_metadata


class Owner(Protocol):
    """The part of an Agent that its SDK agent uses."""

    @property
    def standing_rules(self) -> RuleLayers:
        """The rules below those from a run's context."""
        ...

    @property
    def on_rule_violation(self) -> RuleViolationPolicy:
        """The policy for denied calls."""
        ...

    @property
    def on_mcp_failure(self) -> MCPFailurePolicy:
        """The policy for an MCP server that fails."""
        ...

    @property
    def layers(self) -> Layers:
        """Its middleware."""
        ...

    async def render(self, context: dict[str, Any]) -> str:
        """Return the instructions for this context."""
        ...

    @property
    def sdk_agent(self) -> SDKAgent:
        """Return its SDK agent with up-to-date handoffs."""
        ...

    def trace_metadata(self, context: dict[str, Any], run_id: str) -> dict[str, Any]:
        """Return the complete trace metadata of a run."""
        ...


class SDKAgent(RuledAgent):
    """The SDK's view of an Agent; ``agent.sdk_agent`` returns it.

    It is an ordinary ``agents.Agent``: it can be passed to ``Runner.run``, be a handoff target of SDK agents
    or become a tool. It renders its instructions from the run context.

    Attributes:
        owner: The Agent it represents.
    """

    owner: Owner
    _own_tools: OwnTools
    _holds = True
    _tool_index: AgentToolIndex | None = None
    _served_indexes: ServedToolIndexes | None = None
    _deferral: ToolRetrieval | None = None  # with `provider_search`
    turn_limit: int | None = None
    """Most turns as a tool, from its subagent file."""

    _without_text: str | None = ""
    """Replaces empty instructions; None leaves a hosted prompt's own in force."""

    @classmethod
    def make(
        cls, owner: Owner, tools: Sequence[Tool], retrieval: ToolRetrieval | None = None, **options: Any
    ) -> SDKAgent:
        """Return the SDK agent for ``owner``."""
        log_untested_versions()
        deferral = retrieval if retrieval is not None and retrieval.provider_search else None
        has_servers = bool(options.get("mcp_servers"))
        if deferral is not None:
            tools, retrieval = defer_loading_of(tools, deferral, has_servers=has_servers), None
        own = OwnTools(tools, owner)
        agent = build_quickly(cls, options) or cls(**options)
        agent.tools = own.inside
        agent.owner = owner
        if agent.prompt is not None:
            agent._without_text = None
        if isinstance(agent.output_type, AgentOutput):
            agent.validates_output = True
            agent.model = agent.model
        agent.model_settings = QuickSettings.adopt(agent.model_settings)
        agent._own_tools = own
        agent._deferral = deferral
        if retrieval is not None:
            index = index_for_agent(retrieval, own.held, agent.tools, owner, has_servers=has_servers)
            agent._tool_index, agent._served_indexes = index, ServedToolIndexes(index)
        return agent

    @property
    def book(self) -> Rulebook | None:
        """The Agent, with its base and provider rules."""
        return self.owner

    @property
    def tool_index(self) -> AgentToolIndex | None:
        """The index for tool retrieval, if any."""
        return self._tool_index

    @property
    def held_tools(self) -> Sequence[FunctionTool]:
        """Its tools outside ``tools``, where the SDK does not need them."""
        return self._own_tools.held if self._holds else ()

    @property
    def served_tools(self) -> Sequence[FunctionTool]:
        """The held tools that MCP servers offer."""
        return self._own_tools.served_held if self._holds else ()

    @property
    def given_tools(self) -> list[Tool]:
        """Its tools as given, without guards."""
        own = self._own_tools
        return [
            own.as_given(tool) for tool in own.in_order([*self.held_tools, *self.tools], others_first=False)
        ]

    @property
    def guarded_tools(self) -> list[Tool]:
        """Its guarded tools in order, including held ones."""
        return self._own_tools.in_order([*self.held_tools, *self.tools], others_first=False)

    def as_given(self, tool: Any) -> Any:
        """Return the tool behind a guarded one; anything else unchanged."""
        return self._own_tools.as_given(tool)

    def local_tool_named(self, name: str) -> Tool | None:
        """Return its guarded tool with this name, unless an MCP server offers it."""
        for tool in (*self.held_tools, *self.tools):
            # The other names of a hosted MCP server mean all its tools.
            names = (tool.name,) if isinstance(tool, HostedMCPTool) else facts_of(tool).names
            if name in names and server_of(tool) is None:
                return tool
        return None

    def clone(self, **changes: Any) -> SDKAgent:
        """Copy the agent, including its held tools."""
        copied = cast("SDKAgent", super().clone(**changes))
        copied.owner, copied.turn_limit = self.owner, self.turn_limit
        copied._without_text = "" if copied.prompt is None else None
        copied.validates_output = isinstance(copied.output_type, AgentOutput)
        copied.model = copied.model
        copied._own_tools = self._own_tools
        copied._holds = self._holds and "tools" not in changes
        copied._tool_index = None if "tools" in changes else self._tool_index
        copied._served_indexes = None if "tools" in changes else self._served_indexes
        copied._deferral = self._deferral
        return copied

    def as_tool(self, *arguments: Any, **options: Any) -> FunctionTool:
        """Return the agent as a tool, with its file's turn limit by default."""
        if self.turn_limit is not None:
            given = inspect.signature(super().as_tool).bind(*arguments, **options)
            if given.arguments.get("max_turns") is None:
                given.arguments["max_turns"] = self.turn_limit
            arguments, options = given.args, given.kwargs
        return super().as_tool(*arguments, **options)

    async def get_system_prompt(self, run_context: RunContextWrapper[Any]) -> str | None:
        """Return the rendered instructions, once a turn."""
        if self.instructions is not None:  # only a clone has its own
            return await super().get_system_prompt(run_context)
        context = run_context.context if isinstance(run_context.context, dict) else {}
        run = current_run.get()
        if run is None:
            return await self.owner.render(context) or self._without_text
        if run.agent is self.owner:
            run.turns += 1
            if run.turns == 1 and run._capture is not None and "session" in run.options:
                run._capture.beginning.offered(run_context.turn_input)
            # A tool may have changed the context since the first turn. Another stage's instructions serve all
            # turns.
            if run.instructions is None or (run.turns > 1 and run.instructions is run.rendered):
                run.instructions = run.rendered = await self.owner.render(context)
            return run.instructions or self._without_text
        arm_of = getattr(run.agent, "arm_of", None)
        if arm_of is not None and arm_of() is self.owner:
            # Back at its first agent, which has another arm in this run.
            return await run.agent.render(context) or self._without_text
        # The trace also records the prompt of a handoff target or an agent as tool.
        recorded = run.state.setdefault(_RECORDED, set())
        if id(self) not in recorded:
            recorded.add(id(self))
            record_metadata(run, redacted_data(run, self.owner.trace_metadata(context, run.id)))
        return await self.owner.render(context) or self._without_text

    async def get_all_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
        """Return this turn's tools: enabled, and permitted by the rules."""
        run = current_run.get()
        violation = pending_error(run)
        if violation is not None:  # the SDK has converted the exception to text for the model
            raise violation
        active_agent.set(self.name)
        active_sdk_agent.set(self)
        # The SDK needs the tools first, whatever runs this agent.
        _ = self.owner.sdk_agent
        if self.handoffs:
            guard_reachable(self)  # handoffs may have been added to this object directly
        in_view.set(None)
        tool_index = self._tool_index
        own = self._own_tools
        has_held = self._holds and own.holds_any
        if not (has_held or self.tools or self.mcp_servers):
            # Invalid rules must abort the run here: the next agent may lack a guard.
            layers = rules_of_run(run, run_context.context, self.owner.standing_rules)
            if layers.limits or layers is not self.owner.standing_rules or self.owner.layers.named_tools:
                await self._check_names(run_context, layers, ())
            return await self.offered(run, list_none(run_context))
        tools: list[Tool] = own.switched_on if has_held and tool_index is None else []
        if self.tools or self.mcp_servers:
            # A tool appended to `Agent.tools` since is not guarded yet.
            tools += [
                tool if own.has(tool) else self.guarded_tool(tool)
                for tool in await super().get_all_tools(run_context)
            ]
            tools = own.in_order(tools, others_first=True)
            if self._deferral is not None and self.mcp_servers:
                tools = with_search_tool(tools)
        layers = rules_of_run(run, run_context.context, self.owner.standing_rules)
        if layers.limits or layers is not self.owner.standing_rules or self.owner.layers.named_tools:
            await self._check_names(run_context, layers, tools)
        if tool_index is not None:  # at the end, so that the request only grows there and stays cacheable
            if self.mcp_servers and self._served_indexes is not None:
                served = [tool for tool in tools if self._is_served(tool)]
                tools = [tool for tool in tools if not self._is_served(tool)]
                tool_index = self._served_indexes.with_tools(cast("list[FunctionTool]", served))
            tools += await tool_index.tools_now(run_context, layers, _tool_choice(self))
        tools = await resolve_each_turn(self, run_context, tools, layers)
        finder = tool_index.finder_now(run_context, layers) if tool_index is not None else ()
        tools = list_tools(run_context, tools, layers, self.owner, finder)
        return await self.offered(run, tools)

    def _is_served(self, tool: Tool) -> bool:
        return server_of(tool) is not None and not self._own_tools.has(tool)

    async def index_with_servers(self, run_context: RunContextWrapper[Any]) -> AgentToolIndex | None:
        """Return the index, including the MCP servers' tools."""
        if self._served_indexes is None or not self.mcp_servers:
            return self._tool_index
        return self._served_indexes.with_tools(
            cast("list[FunctionTool]", await self.get_mcp_tools(run_context))
        )

    async def _get_mcp_tool_reserved_names(self, run_context: RunContextWrapper[Any]) -> set[str]:
        # The SDK has no public way to reserve a held tool's name against prefixed ones.
        reserved = await super()._get_mcp_tool_reserved_names(run_context)
        return reserved | self._own_tools.shown_names_of_held if self._holds else reserved

    async def _check_names(
        self, run_context: RunContextWrapper[Any], layers: RuleLayers, tools: Sequence[Tool]
    ) -> None:
        run = current_run.get()
        if run is None or run.agent is not self.owner:
            return
        named = self.owner.layers.named_tools
        if named:
            await check_named_tools(run, run_context, named, listed_by=self, listed=tools)
        if layers is not self.owner.standing_rules or layers.limits:
            await check_rule_names(run, self, layers, run_context, tools)

    @property
    def local_names(self) -> frozenset[str]:
        """Its tools' names in rules, without MCP servers' tools."""
        return super().local_names | self._own_tools.names_of_held if self._holds else super().local_names

    @property
    def shown_local_names(self) -> frozenset[str]:
        """The names shown for its tools and handoffs, without MCP servers' tools."""
        names = super().shown_local_names
        if self._holds:
            names |= self._own_tools.shown_names_of_held
        if self._tool_index is not None and self._tool_index.finder is not None:
            names |= {self._tool_index.finder.name}
        return names

    def mcp_failure_policy(self, run: Run | None) -> MCPFailurePolicy | None:
        """Return the ``on_mcp_failure`` of the Agent."""
        del run
        return self.owner.on_mcp_failure

    async def get_mcp_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
        """Return the guarded MCP tools, new in each turn."""
        tools = await super().get_mcp_tools(run_context)
        if self._deferral is not None:
            defer_loading_of_served(tools, self._deferral)
        guarded = guarded_mcp_tools(tools, self.owner)
        listed: dict[str, list[ToolFacts]] = {}
        for tool in guarded:
            listed.setdefault(server_of(tool) or "", []).append(facts_of_listed(tool))
        vars(self).setdefault(LISTED, {}).update(listed)
        return guarded


_RECORDED = object()


def _tool_choice(agent: SDKAgent) -> Any:
    run = current_run.get()
    of_run = getattr(getattr(run, "run_config", None), "model_settings", None)
    return getattr(of_run, "tool_choice", None) or agent.model_settings.tool_choice
