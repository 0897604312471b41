"""``mcp check``: starts servers and prints their tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import attrs
import typer

from kantan_agents.agent import Agent
from kantan_agents.cli.mcp.trust import ask_for_trust
from kantan_agents.cli.terminal.console import suppress_output, wide_terminal, working
from kantan_agents.cli.terminal.failures import EXIT_FAILED
from kantan_agents.cli.terminal.plain import json_text, one_line
from kantan_agents.cli.terminal.show_quantities import counted
from kantan_agents.errors import KantanAgentsError, MCPNotTrustedError, MCPVariablesError
from kantan_agents.testing import ScriptedModel
from kantan_agents.tool_rules.origins import SERVER_PREFIX
from kantan_agents.tools.explain import Explanation
from kantan_agents.tools.mcp.configuration.configuration import read_configuration
from kantan_agents.tools.mcp.configuration.configured import ConfiguredServers
from kantan_agents.tools.mcp.configuration.entry import ServerEntry
from kantan_agents.tools.mcp.configuration.servers import configured_server
from kantan_agents.tools.mcp.failures import text_of
from kantan_agents.tools.mcp.offers import as_data as data_of
from kantan_agents.tools.mcp.offers import may_offer
from kantan_agents.tools.mcp.server_connections import ask_server
from kantan_agents.tools.mcp.unavailable import UnavailableError

_ASKER = "mcp check"
_MOST_PAGES = 100
_LINES = 5
_DESCRIPTION = 80


@attrs.define
class Checked:
    """The result of a check; ``stderr`` has the last lines on failure, ``verdicts`` the rule of each tool."""

    entry: ServerEntry
    error: str | None = None
    tools: list[tuple[str, str]] = attrs.field(factory=list)
    verdicts: dict[str, tuple[bool, str]] = attrs.field(factory=dict)
    prompts: int = 0
    resources: int = 0
    stderr: list[str] = attrs.field(factory=list)


def check_servers(
    name: str | None,
    paths: Sequence[Path] | None,
    rules: Mapping[str, Any] | None,
    *,
    seconds: float,
    as_json: bool,
) -> None:
    """Start one server, or all that are not disabled."""
    configuration = read_configuration(paths or None)
    names = None if name is None else [name]
    # Read before the trust record is read for the last time.
    wanted = ConfiguredServers(configuration, names).names
    broken = [
        Checked(entry, error="; ".join(entry.mistakes))
        for entry in configuration.entries
        if name is None and entry.mistakes
    ]
    ask_for_trust((entry for entry in configuration.entries if entry.name in wanted), configuration)
    servers = ConfiguredServers(configuration, names)
    with working(wide_terminal(stderr=True), "Starting servers ..."):
        checked = [*anyio.run(_checked, servers, rules, seconds), *broken]
    if as_json:
        typer.echo(json_text({"servers": [_data(one) for one in checked]}))
    else:
        typer.echo("\n".join(_lines(checked)) or "No MCP server is configured.")
    if any(one.error is not None for one in checked):
        raise typer.Exit(EXIT_FAILED)


async def _checked(
    servers: ConfiguredServers, rules: Mapping[str, Any] | None, seconds: float
) -> list[Checked]:
    results = [Checked(entry) for entry in servers.entries]
    async with servers:
        async with anyio.create_task_group() as tasks:
            for result in results:
                tasks.start_soon(_check, servers, result, seconds)
        usable = [servers[one.entry.name] for one in results if one.error is None]
        with suppress_output():
            # The providers whose rules apply below may print while they load.
            agent: Agent[Any] = Agent("check", "Check.", model=ScriptedModel([]), mcp_servers=usable)
            context = None if rules is None else {"tool_rules": dict(rules)}
            for result in results:
                if result.error is None:
                    answer = agent.explain_tool(f"{SERVER_PREFIX}{result.entry.name}", context=context)
                    result.verdicts = {one.tool: _verdict(one) for one in answer.tools}
    return results


async def _check(servers: ConfiguredServers, result: Checked, seconds: float) -> None:
    """Query one server; its failure affects no other."""
    try:
        server = servers[result.entry.name]
    except (MCPNotTrustedError, MCPVariablesError) as error:
        result.error = str(error)
        return
    try:
        with anyio.fail_after(seconds):
            listed = await ask_server(server, server.list_tools, _ASKER)
            result.tools = [(tool.name, " ".join((tool.description or "").split())) for tool in listed]
            if may_offer(server, "prompts"):
                prompts = data_of(await ask_server(server, server.list_prompts, _ASKER))
                result.prompts = len(prompts.get("prompts", []))
            if may_offer(server, "resources"):
                result.resources = await _number_of_resources(server)
    except TimeoutError:
        note = getattr(configured_server(server), "kantan_note", "")
        result.error = f"it has not answered within {seconds:g} seconds{note}"
    except Exception as error:  # noqa: BLE001 - whatever a server does, the others are checked
        is_sentence = isinstance(error, KantanAgentsError | UnavailableError)
        result.error = str(error) if is_sentence else text_of(error)
    if result.error is not None:
        own = configured_server(server)
        result.stderr = own.last_lines(_LINES) if own is not None else []


async def _number_of_resources(server: Any) -> int:
    count, cursor = 0, None
    for _ in range(_MOST_PAGES):
        page = data_of(await ask_server(server, partial(server.list_resources, cursor), _ASKER))
        count += len(page.get("resources", []))
        cursor = page.get("nextCursor")
        if not cursor:
            break
    return count


def _verdict(explanation: Explanation) -> tuple[bool, str]:
    return explanation.allowed, explanation.rule


def _lines(checked: Sequence[Checked]) -> Iterator[str]:
    for number, one in enumerate(checked):
        if number:
            yield ""
        head = f"{one.entry.name} ({one.entry.transport}, {one.entry.source.path})"
        if one.error is not None:
            yield one_line(f"{head}: cannot be used")
            yield f"  {one_line(one.error)}"
            yield from (f"  stderr: {one_line(line)}" for line in one.stderr)
            continue
        offers = (counted(len(one.tools), "tool"), counted(one.prompts, "prompt"))
        yield one_line(f"{head}: {', '.join(offers)}, {counted(one.resources, 'resource')}")
        width = max((len(one_line(name)) for name, _ in one.tools), default=0)
        for name, description in one.tools:
            allowed, rule = one.verdicts.get(name, (False, "its rules are unknown"))
            verdict = "allowed" if allowed else f"denied by {one_line(rule)}"
            shown = one_line(description)[:_DESCRIPTION]
            yield f"  {one_line(name).ljust(width)}  {verdict}  {shown}".rstrip()


def _data(one: Checked) -> dict[str, Any]:
    tools = []
    for name, description in one.tools:
        allowed, rule = one.verdicts.get(name, (False, "its rules are unknown"))
        tools.append({"name": name, "description": description, "allowed": allowed, "rule": rule})
    return {
        "name": one.entry.name,
        "type": one.entry.transport,
        "file": str(one.entry.source.path),
        "error": one.error,
        "tools": tools,
        "prompts": one.prompts,
        "resources": one.resources,
        "stderr": one.stderr,
    }
