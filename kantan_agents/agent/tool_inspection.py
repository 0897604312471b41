"""``ToolInspection``: what an ``Agent`` says about its tools without a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents import RunContextWrapper
from typing_extensions import TypeVar

from kantan_agents.agent.bridge import SDKAgent, list_servers, offers_of
from kantan_agents.core.context import check_context
from kantan_agents.errors import InvalidOptionError
from kantan_agents.tool_rules import RuleLayers
from kantan_agents.tools.explain import Explanation, explain_layers
from kantan_agents.tools.explain_named import explain_named
from kantan_agents.tools.retrieval import ToolSelection
from kantan_agents.tools.retrieval.selection import select_tools
from kantan_agents.tools.rules_in_force import rules_in_force

ValueT = TypeVar("ValueT")
"""Type of the context's values: checkers infer ``dict[str, str]`` for some dicts, not ``dict[str, Any]``."""


class ToolInspection:
    """An Agent that is asked about its tools: which may be used, why, and which would be selected."""

    _sdk_agent: SDKAgent
    standing_rules: RuleLayers

    def explain_tool(
        self,
        tool: Any,
        arguments: Mapping[str, Any] | str | None = None,
        context: dict[str, ValueT] | None = None,
    ) -> Explanation:
        """Explain whether this agent may use a tool, and which rule of which layer decides it.

        The tools of an MCP server are known once it has listed them, in a run for example. Until then, the
        answer says what it does not know, and ``explain_tool_async`` asks the server.

        Args:
            tool: Name of a tool of this agent, as the model or a rule writes it, or any tool. The name of an
                MCP server, such as ``"mcp__files"``, means all its tools.
            arguments: Arguments of a call, as a mapping or JSON text. None checks the tool without a call.
            context: A run's context; its ``tool_rules`` are the explicit rules.

        Raises:
            ToolRulesTypeError, InvalidToolRulesError: E18, E20, the rules are not valid.
        """
        explicit = check_context({} if context is None else context)
        layers = rules_in_force(explicit, self.standing_rules)
        offers = offers_of(self._sdk_agent)
        if isinstance(tool, str):
            local = self._sdk_agent.local_tool_named(tool)
            if local is None:
                return explain_named(layers, tool, arguments, offers)
            tool = local
        return explain_layers(layers, tool, arguments, offers.around)

    async def explain_tool_async(
        self,
        tool: Any,
        arguments: Mapping[str, Any] | str | None = None,
        context: dict[str, ValueT] | None = None,
    ) -> Explanation:
        """List the tools of the agent's MCP servers, then answer as ``explain_tool``.

        A server that cannot be listed, because it is not connected for example, is logged; what the answer
        does not know because of it is in ``unknown``.

        Args:
            tool: As for ``explain_tool``.
            arguments: As for ``explain_tool``.
            context: As for ``explain_tool``. The tool filters of the servers get it as well.

        Raises:
            ToolRulesTypeError, InvalidToolRulesError: E18, E20, the rules are not valid.
        """
        explicit = check_context({} if context is None else context)
        await list_servers(self._sdk_agent, explicit)
        return self.explain_tool(tool, arguments, explicit)

    async def select_tools(self, input: Any, context: dict[str, ValueT] | None = None) -> ToolSelection:
        """Return the tools that ``tool_retrieval`` would select at the start of a run with this input.

        Args:
            input: As for ``run_async``. The user's newest text is the query.
            context: A run's context; its ``tool_rules`` are the explicit rules.

        Raises:
            InvalidOptionError: E75, the agent has no ``tool_retrieval``.
            ToolRulesTypeError, InvalidToolRulesError: E18, E20, the rules are not valid.
        """
        tool_index = self._sdk_agent.tool_index
        if tool_index is None:
            raise InvalidOptionError(
                option="tool_retrieval", reason="this agent has none: it shows all its tools"
            )
        explicit = check_context({} if context is None else context)
        tool_index = await self._sdk_agent.index_with_servers(RunContextWrapper(explicit)) or tool_index
        return await select_tools(tool_index, input, rules_in_force(explicit, self.standing_rules))
