"""The tools of an agent as commands."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import anyio.to_thread
import attrs
from agents import FunctionTool, RunContextWrapper, Tool

from kantan_agents.bridge import SDKAgent
from kantan_agents.commands import Command, CommandRegistry
from kantan_agents.support.log import get_logger
from kantan_agents.tools import facts_of

_log = get_logger("kantan_agents.commands")
_AT_ONCE = 100
_MADE = "_kantan_commands"


class AgentCommands:
    """The commands of agents; those of an agent's own tools are made once, as long as these stay the same.

    Args:
        aliases: More names for them.
        prefix: What commands begin with.
    """

    def __init__(self, aliases: Mapping[str, str], prefix: str) -> None:
        self._aliases = aliases
        self._prefix = prefix

    async def of(self, owner: Any, wrapper: RunContextWrapper[Any], name: str | None) -> CommandRegistry:
        """Return the commands of an agent.

        Args:
            owner: The Agent.
            wrapper: The SDK's context of the run.
            name: What is looked for; MCP servers are asked only if the agent itself has no tool of that name.
                None asks them in any case.

        Raises:
            InvalidOptionError: E75, an alias is the name of a tool, or stands for none.
            Exception: What an MCP server raised.
        """
        agent: SDKAgent = owner.sdk_agent
        own = [unguarded(tool) for tool in agent.given_tools]
        seen = [_look(tool) for tool in own]
        # On the agent, so that it goes with it: its tools may refer to it.
        registry: CommandRegistry
        made: WeakKeyDictionary[Any, Any] = vars(owner).setdefault(_MADE, WeakKeyDictionary())
        known = made.get(self)
        if known is None or known[0] != seen:
            registry = await self._registry(own, (), may_lack=bool(agent.mcp_servers))
            known = made[self] = (seen, registry)
        registry = known[1]
        if not agent.mcp_servers or (name is not None and registry.find(name) is not None):
            return registry
        served = [unguarded(tool) for tool in await agent.get_mcp_tools(wrapper)]
        return await self._registry(own, served, may_lack=False)

    async def _registry(
        self, own: Sequence[Tool], served: Sequence[Tool], *, may_lack: bool
    ) -> CommandRegistry:
        make = partial(self._made, own, served, may_lack=may_lack)
        return make() if len(own) + len(served) <= _AT_ONCE else await anyio.to_thread.run_sync(make)

    def _made(self, own: Sequence[Tool], served: Sequence[Tool], *, may_lack: bool) -> CommandRegistry:
        commands: dict[str, Command] = {}
        for command in [*map(command_of, own), *filter(None, map(self._beside_aliases, served))]:
            commands.setdefault(command.name, command)
        return CommandRegistry(commands.values(), self._aliases, prefix=self._prefix, allow_missing=may_lack)

    def _beside_aliases(self, tool: Tool) -> Command | None:
        """Return a server's tool as a command; no server takes a name that is an alias already."""
        command = command_of(tool)
        if command.name not in self._aliases:
            return command
        others = tuple(name for name in command.aliases if name not in self._aliases)
        _log.warning("an alias has the name of a server's tool", alias=command.name, instead=others[:1])
        return attrs.evolve(command, name=others[0], aliases=others[1:]) if others else None


def _look(tool: Tool) -> tuple[Any, ...]:
    """Return what a command is made of, to be compared quickly; the registry keeps all of it alive."""
    schema, description = getattr(tool, "params_json_schema", None), getattr(tool, "description", None)
    return (id(tool), tool.name, id(schema), id(description))


def command_of(tool: Tool) -> Command:
    """Return a tool as a command; its other names in rules are names of the command as well."""
    name = str(getattr(tool, "qualified_name", tool.name))
    others = tuple(other for other in facts_of(tool).names if other != name)
    if not isinstance(tool, FunctionTool):
        return Command(name, target=tool, aliases=others)
    return Command(name, tool.description or "", tool.params_json_schema, tool, others)


def unguarded(tool: Tool) -> Tool:
    """Return the tool behind a guard that asks the rules of models."""
    original = getattr(getattr(tool, "on_invoke_tool", None), "original", None)
    return original if isinstance(original, FunctionTool) else tool


async def is_enabled(tool: Tool, wrapper: RunContextWrapper[Any], agent: SDKAgent) -> bool:
    """Return whether a tool is switched on, as the SDK asks it."""
    enabled: Any = getattr(tool, "is_enabled", True)
    answer: Any = enabled(wrapper, agent) if callable(enabled) else enabled
    return bool(await answer if inspect.isawaitable(answer) else answer)
