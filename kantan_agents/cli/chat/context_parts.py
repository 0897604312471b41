"""The next request's parts with estimated tokens."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs
from agents import Agent as SDKBaseAgent
from agents import FunctionTool, Handoff, HostedMCPTool, RunContextWrapper
from agents.mcp import MCPUtil

from kantan_agents.agent import Agent
from kantan_agents.cli.chat.compact import HEADING
from kantan_agents.cli.chat.kept_conversation import Item
from kantan_agents.cli.chat.mentions import FILE
from kantan_agents.core.items import is_call, is_message, is_reasoning, is_result
from kantan_agents.middleware.compact_history.tokens import tokens_of_item, tokens_of_text, tokens_of_tool
from kantan_agents.subagent_files.skill_tools import SKILL_TOOLS
from kantan_agents.tools.facts import label_of
from kantan_agents.tools.mcp.server_connections import tended_servers
from kantan_agents.tools.server_names import server_of


@attrs.frozen
class ContextPart:
    """A part; ``origin`` is the start of a string, or a tool's name."""

    kind: str
    origin: str
    tokens: int


async def parts_before(
    agent: Agent[Any], context: dict[str, Any], added: Mapping[str, str], offered: Iterable[FunctionTool] = ()
) -> list[ContextPart]:
    """Return the parts before the conversation. MCP servers are not called: their last tools count."""
    context = copy.copy(context)
    files = [ContextPart("project instructions", path, tokens_of_text(text)) for path, text in added.items()]
    own = tokens_of_text(await agent.render(context)) - sum(one.tokens for one in files)
    parts = [ContextPart("instructions", f"of {agent.name}", max(0, own)), *files]
    sdk_agent = agent.sdk_agent
    local = await sdk_agent.clone(mcp_servers=[]).get_all_tools(RunContextWrapper(context))
    tools = *local, *offered
    parts += [ContextPart(_source_of(tool), tool.name, tokens_of_tool(tool)) for tool in tools]
    parts += _served(agent, context)
    for target in sdk_agent.handoffs:
        name = target.name if isinstance(target, SDKBaseAgent) else target.agent_name
        shown = Handoff.default_tool_description(target) if isinstance(target, SDKBaseAgent) else ""
        tokens = tokens_of_tool(target) + tokens_of_text(shown)
        parts.append(ContextPart("hand-offs", f"to {name}", tokens))
    return parts


def _source_of(tool: Any) -> str:
    if tool.name in SKILL_TOOLS:
        return "descriptions of skills"
    server = label_of(tool) if isinstance(tool, HostedMCPTool) else server_of(tool)
    return "tools of the agent" if server is None else f"tools of {server}"


def _served(agent: Agent[Any], context: dict[str, Any]) -> Iterator[ContextPart]:
    for server in tended_servers(agent.sdk_agent):
        kind = f"tools of {server.name}"
        if server.last_tools is None:
            yield ContextPart(f"{kind} (not listed yet)", "", 0)
        for one in server.last_tools or ():
            tool = MCPUtil.to_function_tool(one, server.server, convert_schemas_to_strict=False)
            if agent.explain_tool(tool, context=context).allowed:
                yield ContextPart(kind, tool.name, tokens_of_tool(tool))


def parts_of(items: Iterable[Item]) -> Iterator[ContextPart]:
    """Yield the parts of a conversation."""
    calls: dict[Any, str] = {}
    for item in items:
        content = item.get("content")
        if is_call(item):
            calls[item.get("call_id")] = f"{item.get('name')} {item.get('arguments')}"
            yield ContextPart("calls of tools", calls[item.get("call_id")], tokens_of_item(item))
        elif is_result(item):
            yield from _split("results of tools", item.get("output"), calls.get(item.get("call_id"), ""))
        elif not is_message(item):
            kind = "reasoning" if is_reasoning(item) else "other items"
            yield ContextPart(kind, str(item["type"]), tokens_of_item(item))
        elif item.get("role") != "user":
            yield from _split("answers", content)
        elif isinstance(content, str) and content.startswith(HEADING):
            yield from _split("summary", content.removeprefix(HEADING))
        else:
            yield from _split("your messages", content)


def _split(kind: str, content: Any, origin: str = "") -> Iterator[ContextPart]:
    for number, part in enumerate(content if isinstance(content, list) else [content or ""]):
        is_image = isinstance(part, dict) and part.get("type") == "input_image"
        text = str(part.get("text", "")) if isinstance(part, dict) else str(part)
        is_file = kind == "your messages" and number > 0 and text.startswith(FILE)
        of_part = "images" if is_image else "files sent" if is_file else kind
        yield ContextPart(of_part, origin or text.strip() or of_part, tokens_of_item(part))
