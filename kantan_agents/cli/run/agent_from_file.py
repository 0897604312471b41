"""Builds a runnable agent from a subagent file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import typer

from kantan_agents.agent import Agent
from kantan_agents.agent.delegation import task_tool
from kantan_agents.agent.from_definition import missing_tools
from kantan_agents.cli.agents.agent_to_run import AgentToRun
from kantan_agents.cli.run.instruction_options import instruction_options
from kantan_agents.cli.terminal.agent_options import OPTIONS_OF_TOOLS, TOOLS_OF_CHAT
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.cli.terminal.protect_used import protect_used
from kantan_agents.cli.terminal.replaced import say_replaced
from kantan_agents.core.interception import Middleware
from kantan_agents.core.pipeline import Next, Run, Stage
from kantan_agents.errors import KantanAgentsError
from kantan_agents.subagent_files import MODELS, AgentDefinition, AgentLoader
from kantan_agents.subagent_files.unknown_tools import UnknownTool, listed, names_no_tool
from kantan_agents.support.nearest import nearest
from kantan_agents.tools.skills import SkillCatalog, SkillLoader


def agent_from_file(
    named: AgentToRun,
    model: str | None,
    middleware: Sequence[Stage | Middleware] = (),
    tools: Sequence[Any] = (),
    *,
    asks: bool = False,
) -> Agent[Any]:
    """Return the agent of a file, which may delegate to the others.

    In a terminal, the user is prompted to trust the files of its servers and instructions. Standard error
    names missing tools, skills and servers. ``model`` applies if the file has a short model name or none.
    """
    (skills,) = named.pinned.skills
    protect_used(named.pinned.directories)
    servers = _servers_of(named, asks=asks)  # before the instructions: one prompt covers both
    agent: Agent[Any] = Agent.from_definition(
        named.definition,
        tools=[task_tool(named.loader), *tools],
        mcp_servers=servers,
        model=model,
        # Short names belong to one provider; --model replaces them, so that the files run on any provider.
        # Names such as `inherit` still mean the parent's model.
        models=None if model is None else {short: model for short, known in MODELS.items() if known},
        skills=skills,
        allow_env=False,
        middleware=[*middleware, _naming_what_is_missing(named.loader, skills)],
        **instruction_options(named.pinned.instruction_files),
    )
    _name_missing_tools(named.definition, agent)
    if named.definition.skills:
        found = skills.load_skills_now()
        _name_missing_skills(named.definition, found)
        say_replaced("skill", found.shadowed, skills.directories, named.definition.skills)
    return agent


def _servers_of(named: AgentToRun, *, asks: bool) -> list[Any]:
    definition = named.definition
    if definition.mcp_servers is None:
        return []
    # Imported here: few files have servers.
    from kantan_agents.cli.mcp.trust import ask_for_trust
    from kantan_agents.tools.mcp.configuration.agent_file import wanted_servers
    from kantan_agents.tools.mcp.configuration.configured import ConfiguredServers

    servers = ConfiguredServers(named.pinned.configuration(), approval=asks)
    entries = servers.entries_for(definition, known_only=True)
    usable = {entry.name for entry in entries}
    for name in wanted_servers(definition).names:
        if name not in usable:
            known = servers.configuration.find(name)
            reason = f"no MCP server {name!r} is configured"
            if known is not None and known.mistakes:
                reason = f"{known.source.path}: {'; '.join(known.mistakes)}"
            sentence = f"mcpServers of agent {definition.name!r}: {reason}"
            typer.echo(f"warning: {one_line(sentence)}; the agent runs without it", err=True)
    others: list[Any] = []
    for other in named.loader.load_agents_now():
        with suppress(KantanAgentsError):  # its own run reports the problem
            others += wanted_servers(other).entries
    files = named.pinned.instruction_files
    ask_for_trust(entries, servers.configuration, others, None if files is None else files.questions())
    # A failed server is restarted: its program must be unchanged by then.
    protect_used(program for entry in entries for program in _programs_of(entry))
    return servers.for_definition(definition, known_only=True)


def _programs_of(entry: Any) -> Iterator[str]:
    # Imported here: few agents have servers.
    from kantan_agents.toolkit.named_files.programs import used_by_server

    return used_by_server(entry)


def _naming_what_is_missing(loader: AgentLoader, skills: SkillLoader) -> Stage:
    """Return a stage that names each subagent's missing tools, servers and skills once."""
    named: set[str] = set()

    async def name_what_is_missing(run: Run, call_next: Next) -> None:
        name = run.agent.name
        if run.delegation is not None and name not in named:
            named.add(name)
            try:
                definition = await loader.get_agent(name)
            except KantanAgentsError:
                pass  # its file has changed since; the run uses the earlier version
            else:
                _name_missing_tools(definition, run.agent)
                _name_missing_servers(definition, run.agent)
                if definition.skills:
                    _name_missing_skills(definition, await skills.load_skills())
        await call_next(run)

    return name_what_is_missing


def _name_missing_tools(definition: AgentDefinition, agent: Agent[Any]) -> None:
    unknown = missing_tools(definition, agent.unguarded_tools)
    if unknown:
        sentence = names_no_tool(unknown, where=f"of agent {definition.name!r}")
        pronoun = "it" if len(unknown) == 1 else "them"
        hint = "".join(f"; {options} gives {names}" for options, names in _ways_to_have(unknown).items())
        typer.echo(f"warning: {one_line(sentence)}; the agent runs without {pronoun}{hint}", err=True)


def _name_missing_servers(definition: AgentDefinition, agent: Agent[Any]) -> None:
    if definition.mcp_servers is None:
        return
    from kantan_agents.tools.mcp.configuration.agent_file import wanted_servers  # few files have servers

    has = {server.name for server in agent.given.mcp_servers}
    try:
        wanted = wanted_servers(definition).names
    except KantanAgentsError as error:
        typer.echo(f"warning: {one_line(str(error))}", err=True)
        return
    missing = ", ".join(repr(name) for name in wanted if name not in has)
    if missing:
        sentence = f"mcpServers of agent {definition.name!r}: the agent that delegates to it has no {missing}"
        typer.echo(f"warning: {one_line(sentence)}, and a subagent has the servers of that agent", err=True)


def _ways_to_have(unknown: Sequence[UnknownTool]) -> dict[str, str]:
    ways = {**OPTIONS_OF_TOOLS, **TOOLS_OF_CHAT}
    found: dict[str, list[str]] = {}
    for tool in unknown:
        if tool.name in ways:
            found.setdefault(ways[tool.name], []).append(tool.name)
    return {options: ", ".join(names) for options, names in found.items()}


def _name_missing_skills(definition: AgentDefinition, catalog: SkillCatalog) -> None:
    names = catalog.names()
    unknown = (name for name in definition.skills if catalog.find(name) is None)
    missing = [UnknownTool(name, nearest(name, names)) for name in unknown]
    if missing:
        sentence = f"skills: no skill here is named {listed(missing)}"
        pronoun = "it" if len(missing) == 1 else "them"
        typer.echo(
            f"warning: {one_line(sentence)}; agent {definition.name!r} runs without {pronoun}", err=True
        )
