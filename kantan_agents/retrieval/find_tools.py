"""``find_tools``: the tool with which a model asks for tools it was not shown."""

from __future__ import annotations

import json
from typing import Any

from agents import FunctionTool

from kantan_agents.errors import KantanAgentsError, RetrievalError
from kantan_agents.retrieval.index import RunView, ToolShelf
from kantan_agents.retrieval.query import cut
from kantan_agents.support.log import get_logger
from kantan_agents.tools import rules_in_force
from kantan_agents.tools.unshown import in_view

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


def find_tools_tool(name: str, shelf: ToolShelf) -> FunctionTool:
    """Return the tool that searches a shelf for whoever is at work with it."""

    async def find(tool_context: Any, arguments: str) -> str:
        try:
            query = json.loads(arguments or "{}").get("query")
        except (ValueError, AttributeError, RecursionError):
            query = None
        if not isinstance(query, str) or not query.strip():
            return 'Give a query, such as {"query": "send an e-mail"}.'
        view = in_view.get()
        if not isinstance(view, RunView) or view.shelf is not shelf:
            return "All tools there are have been shown to you."
        return await _found(shelf, view, cut(query), tool_context.context)

    return FunctionTool(name, _DESCRIPTION, _SCHEMA, find)


async def _found(shelf: ToolShelf, view: RunView, query: str, context: Any) -> str:
    try:
        layers = rules_in_force(context, shelf.owner.standing_rules)
        matches = await shelf.best(query, layers, shelf.options.top_n)
    except RetrievalError:
        view.view.shows_all = True
        return "The search is out of order, so all tools are shown to you from now on."
    except KantanAgentsError as error:  # the rules have been made unreadable during the run
        get_logger("kantan_agents.retrieval").warning(
            "tools_not_found", error_code=error.code, reason=str(error)
        )
        return str(error)
    if not matches:
        return "No tool fits that. Try other words, for instance those the tool's name may be made of."
    coming = [match for match in matches if view.show(match.name)]
    if not coming:
        return "You have asked for many tools in one step: use those first, then ask again."
    lines = (f"- {match.name}: {_line(shelf.tool_named(match.name))}" for match in coming)
    return "\n".join(("These can be called from now on:", *lines))


def _line(tool: FunctionTool | None) -> str:
    text = " ".join((tool.description or "").split()) if tool is not None else ""
    return text if len(text) <= _LINE else f"{text[: _LINE - 1]}…"
