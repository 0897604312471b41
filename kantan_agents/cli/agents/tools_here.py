"""Checks that a subagent's tools exist here."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property

from kantan_agents.cli.terminal.agent_options import OPTIONS_OF_TOOLS, TOOLS_OF_CHAT
from kantan_agents.cli.terminal.console import suppress_output
from kantan_agents.subagent_files import AgentDefinition
from kantan_agents.subagent_files.remarks import Remark
from kantan_agents.subagent_files.skill_tools import SKILL_TOOLS
from kantan_agents.subagent_files.unknown_tools import (
    UnknownTool,
    local_tools,
    names_no_tool,
    unknown_tools,
)
from kantan_agents.tools.providers.choice import declared_providers, permitted_providers

TOOLS_OF_RUN: frozenset[str] = frozenset((*SKILL_TOOLS, *OPTIONS_OF_TOOLS, *TOOLS_OF_CHAT))

_BROUGHT = "a program that runs the agent must bring"


class ToolsHere:
    """The tools that exist here, with providers loaded on demand."""

    def __init__(self, brought: Iterable[str] = (), *, of_run: Iterable[str] = TOOLS_OF_RUN) -> None:
        self._brought = frozenset((*brought, *of_run))

    def remark_on(self, definition: AgentDefinition) -> Remark | None:
        """Return a remark on nonexistent tools, or None."""
        unknown = self.unknown_in(definition)
        if not unknown:
            return None
        pronoun = "it" if len(unknown) == 1 else "them"
        return Remark("tools", f"{names_no_tool(unknown, where='here')}; {_BROUGHT} {pronoun}")

    def unknown_in(self, definition: AgentDefinition) -> tuple[UnknownTool, ...]:
        """Return the nonexistent tools."""
        return unknown_tools(definition, self._names) if local_tools(definition) else ()

    @cached_property
    def _names(self) -> Collection[str]:
        return self._brought | _provided_names()


def _provided_names() -> frozenset[str]:
    permitted = permitted_providers()
    if not any(permitted is None or declared.name in permitted for declared, _ in declared_providers()):
        return frozenset()  # without importing the SDK
    with suppress_output():
        from kantan_agents.tools.facts import facts_of_listed
        from kantan_agents.tools.providers.cache import collected_providers

        providers = collected_providers().providers
    return frozenset(
        name for provider in providers for tool in provider.tools for name in facts_of_listed(tool).names
    )
