"""Creates tool indexes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agents import FunctionTool

from kantan_agents.errors import InvalidOptionError, KantanAgentsError, RetrievalError
from kantan_agents.support.log import get_logger
from kantan_agents.tools.read_only import mark_read_only
from kantan_agents.tools.retrieval.index import AgentToolIndex, RunView
from kantan_agents.tools.retrieval.options import ToolRetrieval, known_names, own_names
from kantan_agents.tools.retrieval.query import cut
from kantan_agents.tools.rules_in_force import rules_in_force
from kantan_agents.tools.unshown_tools import in_view
from kantan_agents.traces.capture.playback import IS_OWN_TOOL

_LINE = 200
_DESCRIPTION = (
    "Find more tools. You see only some of the tools there are: describe what you want to do, and the tools "
    "that fit best are listed and can be called from your next step on."
)
_SCHEMA = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "What you want to do, in a few words."}},
    "required": ["query"],
    "additionalProperties": False,
}


def index_for_agent(
    options: ToolRetrieval,
    held: Sequence[FunctionTool],
    others: Sequence[Any],
    owner: Any,
    *,
    has_servers: bool = False,
) -> AgentToolIndex:
    """Return an agent's index; E58 for unknown ``always``, E75 for another ``find_tools``."""
    names = [tool.qualified_name for tool in held]
    always = own_names(options.always, names) if has_servers else known_names(options.always, names)
    tool_index = AgentToolIndex(options, held, owner, always)
    name = options.find_tools
    if name is not None and (tool_index.is_needed or has_servers):
        if any(getattr(tool, "name", None) == name for tool in (*held, *others)):
            reason = f"the agent has a tool named {name} of its own; give another name, or None"
            raise InvalidOptionError(option="find_tools", reason=reason)
        tool_index.finder = find_tools_tool(name)
    return tool_index


def find_tools_tool(name: str) -> FunctionTool:
    """Return the tool; results are shown from the next turn on."""

    async def find(tool_context: Any, arguments: str) -> str:
        try:
            query = json.loads(arguments or "{}").get("query")
        except (ValueError, AttributeError, RecursionError):
            query = None
        if not isinstance(query, str) or not query.strip():
            return 'Give a query, such as {"query": "send an e-mail"}.'
        view = in_view.get()
        if not isinstance(view, RunView) or view.tool_index.finder is not finder:
            return "You have already been shown all tools."
        return await _found(view.tool_index, view, cut(query), tool_context.context)

    finder = FunctionTool(name, _DESCRIPTION, _SCHEMA, find)
    setattr(finder, IS_OWN_TOOL, True)
    return mark_read_only(finder)


async def _found(tool_index: AgentToolIndex, view: RunView, query: str, context: Any) -> str:
    try:
        layers = rules_in_force(context, tool_index.owner.standing_rules)
        matches = await tool_index.best(query, layers, tool_index.options.top_n)
    except RetrievalError:
        view.view.shows_all = True
        return "The search has failed, so all tools are shown to you from now on."
    except KantanAgentsError as error:  # the rules have become invalid during the run
        get_logger("kantan_agents.retrieval").warning(
            "tools_not_found", error_code=error.code, reason=str(error)
        )
        return str(error)
    if not matches:
        return "No tool matches that. Try other words, for instance words that the tool's name may contain."
    added = [match for match in matches if view.show(match.name)]
    if not added:
        return "You have asked for many tools in one step: use those first, then ask again."
    lines = (f"- {match.name}: {_line(tool_index.tool_named(match.name))}" for match in added)
    return "\n".join(("These can be called from now on:", *lines))


def _line(tool: FunctionTool | None) -> str:
    text = " ".join((tool.description or "").split()) if tool is not None else ""
    return text if len(text) <= _LINE else f"{text[: _LINE - 1]}…"
