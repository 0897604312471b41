"""``AgentCommands``: tools as slash commands."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import anyio.to_thread
import attrs
from agents import FunctionTool, RunContextWrapper, Tool

from kantan_agents.agent.bridge import SDKAgent
from kantan_agents.middleware.slash_commands.files import command_of_file
from kantan_agents.middleware.slash_commands.prompts import prompt_commands
from kantan_agents.support.log import get_logger
from kantan_agents.tools.commands import HELP, Command, CommandRegistry
from kantan_agents.tools.facts import facts_of
from kantan_agents.tools.mcp.served import servers_away
from kantan_agents.tools.skills import CommandFile, CommandLoader

_log = get_logger("kantan_agents.commands")
_MAX_INLINE_COMMANDS = 100
_CACHE = "_kantan_commands"


class AgentCommands:
    """Caches the commands for an agent's own tools."""

    def __init__(self, aliases: Mapping[str, str], prefix: str, files: CommandLoader | None = None) -> None:
        self._aliases = aliases
        self._prefix = prefix
        self._files = files
        self._left_out: set[str] = set()

    async def of(self, owner: Any, wrapper: RunContextWrapper[Any], name: str | None) -> CommandRegistry:
        """Return the commands of an agent; E75 for an invalid alias.

        MCP servers are called only if the agent's own tools do not include ``name``, or if it is None.
        """
        agent: SDKAgent = owner.sdk_agent
        own = [unguarded(tool) for tool in agent.given_tools]
        catalog = None if self._files is None else await self._files.load_commands()
        files = () if catalog is None else tuple(catalog)
        fingerprints = [*map(_fingerprint, own), catalog]
        # Stored on the agent to have the same lifetime: the tools may refer to the agent.
        registry: CommandRegistry
        cache: WeakKeyDictionary[Any, Any] = vars(owner).setdefault(_CACHE, WeakKeyDictionary())
        known = cache.get(self)
        if known is None or known[0] != fingerprints:
            registry = await self._registry(own, (), allow_missing=bool(agent.mcp_servers), files=files)
            known = cache[self] = (fingerprints, registry)
        registry = known[1]
        if not agent.mcp_servers or (name is not None and registry.find(name) is not None):
            return registry
        served = [unguarded(tool) for tool in await agent.get_mcp_tools(wrapper)]
        missing = bool(servers_away.get())  # an alias may be for a tool of such a server
        return await self._registry(own, served, allow_missing=missing, prompts_of=agent, files=files)

    async def _registry(
        self,
        own: Sequence[Tool],
        served: Sequence[Tool],
        *,
        allow_missing: bool,
        prompts_of: SDKAgent | None = None,
        files: Sequence[CommandFile] = (),
    ) -> CommandRegistry:
        is_short = len(own) + len(served) <= _MAX_INLINE_COMMANDS
        list_commands = partial(self._commands, own, served)
        commands = list_commands() if is_short else await anyio.to_thread.run_sync(list_commands)
        if prompts_of is not None:
            commands += await prompt_commands(prompts_of, commands)
        commands += self._of_files(files, commands)
        make = partial(
            CommandRegistry, commands, self._aliases, prefix=self._prefix, allow_missing=allow_missing
        )
        return make() if is_short else await anyio.to_thread.run_sync(make)

    def _commands(self, own: Sequence[Tool], served: Sequence[Tool]) -> list[Command]:
        commands: dict[str, Command] = {}
        for command in [*map(command_of, own), *filter(None, map(self._without_alias_conflicts, served))]:
            commands.setdefault(command.name, command)
        return list(commands.values())

    def _of_files(self, files: Sequence[CommandFile], commands: Sequence[Command]) -> list[Command]:
        """Existing names win."""
        taken = {HELP, *self._aliases, *(name for one in commands for name in (one.name, *one.aliases))}
        found: list[Command] = []
        for file in files:
            if file.name in taken:
                if file.name not in self._left_out:  # once, as this happens in each run
                    self._left_out.add(file.name)
                    reason = "another command has this name"
                    _log.warning(
                        "command_file_left_out", command=file.name, path=str(file.path), reason=reason
                    )
                continue
            found.append(command_of_file(file))
        return found

    def _without_alias_conflicts(self, tool: Tool) -> Command | None:
        """Aliases take precedence over the tool's names."""
        command = command_of(tool)
        if command.name not in self._aliases:
            return command
        others = tuple(name for name in command.aliases if name not in self._aliases)
        _log.warning("an alias has the name of a server's tool", alias=command.name, instead=others[:1])
        return attrs.evolve(command, name=others[0], aliases=others[1:]) if others else None


def _fingerprint(tool: Tool) -> tuple[Any, ...]:
    """The cached registry keeps the objects with these ids alive."""
    schema, description = getattr(tool, "params_json_schema", None), getattr(tool, "description", None)
    return (id(tool), tool.name, id(schema), id(description))


def command_of(tool: Tool) -> Command:
    """Return a tool as a command; its other names become aliases.

    Names with which a server's tool claims to be another tool are excluded.
    """
    facts = facts_of(tool)
    name = str(getattr(tool, "qualified_name", tool.name))
    names = facts.names if facts.origin is None else facts.origin.names
    if facts.origin is not None and name not in names and names:
        name = names[0]
    others = tuple(other for other in names if other != name)
    if not isinstance(tool, FunctionTool):
        return Command(name, target=tool, aliases=others)
    return Command(name, tool.description or "", tool.params_json_schema, tool, others)


def unguarded(tool: Tool) -> Tool:
    """Without the guard for the model's rules."""
    original = getattr(getattr(tool, "on_invoke_tool", None), "original", None)
    return original if isinstance(original, FunctionTool) else tool


async def is_enabled(tool: Tool, wrapper: RunContextWrapper[Any], agent: SDKAgent) -> bool:
    """As the SDK determines it."""
    enabled: Any = getattr(tool, "is_enabled", True)
    answer: Any = enabled(wrapper, agent) if callable(enabled) else enabled
    return bool(await answer if inspect.isawaitable(answer) else answer)
