"""Prompts of MCP servers as commands: ``/mcp__SERVER__PROMPT``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Final

import anyio
import attrs
from agents.mcp import MCPServer

from kantan_agents.agent.bridge import SDKAgent
from kantan_agents.core.interception import redacted_new_input
from kantan_agents.core.pipeline import Run, current_run
from kantan_agents.support.log import get_logger
from kantan_agents.tool_rules import ToolFacts
from kantan_agents.tool_rules.origins import SERVER_PREFIX, Origin
from kantan_agents.tools.commands import Command
from kantan_agents.tools.facts import servers_of
from kantan_agents.tools.mcp import mcp_prompt
from kantan_agents.tools.mcp.offers import as_data, may_offer, reason_of
from kantan_agents.tools.mcp.server_connections import ask_server, is_of_sdk
from kantan_agents.tools.server_names import Surroundings, names_in_rules, origin_of, safe

_FETCHED: Final = "prompt"
"""The step of a durable run that stores the messages."""

_log = get_logger("kantan_agents.commands")


@attrs.frozen(eq=False)
class ServerPrompt:
    """User rules apply as to a tool of its server."""

    server: MCPServer
    name: str
    facts: ToolFacts


async def prompt_commands(agent: SDKAgent, commands: Iterable[Command]) -> list[Command]:
    """Return the prompts of the agent's servers; existing names win."""
    taken = {name for command in commands for name in (command.name, *command.aliases)}
    around = Surroundings(
        agent.local_names, servers_of(agent.tools) | {server.name for server in agent.mcp_servers}
    )
    found: list[Command] = []
    for commands_of_server in await _prompts_of_all(agent, around):
        for command in commands_of_server:
            if command.name in taken:
                _log.warning("prompt_left_out", prompt=command.name, reason="another command has this name")
                continue
            taken.add(command.name)
            found.append(command)
    return found


async def begin_with_prompt(run: Run, prompt: ServerPrompt, command: str, arguments: str) -> None:
    """Make the messages of a prompt the input of a run; E39 without them."""
    kept = None if run._journal is None else run._journal.known(_FETCHED)
    if kept is None:
        fetch = partial(mcp_prompt, prompt.server, prompt.name, json.loads(arguments))
        items = list((await ask_server(prompt.server, fetch, run.agent.name)).items)
        if run._journal is not None:
            await run._journal.keep(_FETCHED, {"items": items})
    else:
        items = kept["items"]
    if run._capture is not None:
        # A replay calls no server, so a run that repeats this one starts with the messages.
        run._capture.beginning.with_input(items)
    run.input = redacted_new_input(run, items, f"the prompt {command}")
    _log.info("prompt sent", command=command, agent=run.agent.name)


async def _prompts_of_all(agent: SDKAgent, around: Surroundings) -> list[list[Command]]:
    """A slow server must not delay the others."""
    found: dict[int, list[Command]] = {}

    async def ask(number: int, server: MCPServer) -> None:
        found[number] = await _prompts_of(server, around, agent.name)

    async with anyio.create_task_group() as tasks:
        for number, server in enumerate(agent.mcp_servers):
            if is_of_sdk(server):
                tasks.start_soon(ask, number, server)
    for number, server in enumerate(agent.mcp_servers):
        if number not in found:
            await ask(number, server)
    return [found[number] for number in sorted(found)]


async def _prompts_of(server: MCPServer, around: Surroundings, agent: str) -> list[Command]:
    run = current_run.get()
    if run is not None and run._tape is not None:
        return []  # a replay calls no server; the recorded input of such a command is the prompt's messages
    if not may_offer(server, "prompts"):
        return []
    try:
        listed = as_data(await ask_server(server, server.list_prompts, agent)).get("prompts", [])
    except Exception as error:  # noqa: BLE001 - a server without prompts may raise; its tools are commands
        _log.warning("prompts_not_listed", server=server.name, reason=reason_of(error))
        return []
    return list(_commands(server, listed, around))


def _commands(server: MCPServer, listed: list[dict[str, Any]], around: Surroundings) -> Iterator[Command]:
    for prompt in listed:
        own = str(prompt["name"])
        name = f"{SERVER_PREFIX}{safe(server.name)}__{safe(own)}"
        # Without the prefix, a prompt could be taken for a tool.
        prefixed = origin_of(server.name, own, own, around).prefixed
        if name not in prefixed:
            _log.warning("prompt_left_out", prompt=name, reason="the name may mean another server")
            continue
        arguments = prompt.get("arguments") or []
        schema = {
            "type": "object",
            "properties": {
                one["name"]: {"type": "string", "description": one.get("description", "")}
                for one in arguments
            },
            "required": [one["name"] for one in arguments if one.get("required")],
        }
        # Rules that deny apply to the name without the prefix too, as for a tool.
        names = tuple(dict.fromkeys((name, *names_in_rules(server.name, own), own)))
        facts = ToolFacts(
            names, next(iter(schema["properties"]), None), schema, origin=Origin(None, prefixed)
        )
        description = prompt.get("description") or prompt.get("title") or ""
        yield Command(name, description, schema, ServerPrompt(server, own, facts))
