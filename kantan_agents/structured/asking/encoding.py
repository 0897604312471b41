"""A request as it is sent in one form, for an output of a schema."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import attrs

from kantan_agents.structured.asking.agent_output import AgentOutput
from kantan_agents.structured.asking.final_tool import final_tool, final_tool_name
from kantan_agents.structured.asking.forms import Form
from kantan_agents.structured.asking.request import Request


@attrs.frozen
class Encoded:
    """A request in one form.

    Attributes:
        request: What is sent.
        final_tool: Name of the tool whose arguments are the answer, None where there is none.
    """

    request: Request
    final_tool: str | None = None


def encoded(request: Request, schema: AgentOutput, form: Form, *, is_chat: bool) -> Encoded:
    """Return a request in a form.

    Args:
        request: What the SDK asks for.
        schema: What the answer must fit.
        form: How it is asked for.
        is_chat: Whether it goes over chat completions rather than the Responses API.
    """
    if form.mode == "native":
        return Encoded(request)
    bare = request.with_options(output_schema=None)
    if form.mode == "prompt":
        instructions = _with_end(bare.instructions, _prompt_end(schema, bare))
        settings = _json_object(bare.settings, is_chat=is_chat) if form.json_object else bare.settings
        return Encoded(attrs.evolve(bare, instructions=instructions, settings=settings))
    name = final_tool_name(bare.tools, bare.handoffs)
    asked = attrs.evolve(
        bare,
        instructions=_with_end(bare.instructions, _tool_end(name)),
        tools=[*bare.tools, final_tool(name, schema.plain)],
        settings=_choosing_tools(bare, name, forced=form.forces_tool),
    )
    return Encoded(asked, name)


def _with_end(instructions: str | None, end: str) -> str:
    return f"{instructions}\n\n{end}" if instructions else end


def _tool_end(name: str) -> str:
    # Short, and nothing about JSON: a model that is told to write JSON does not call the tool
    # (spec structured output).
    return f"Give the final answer by calling the tool `{name}`."


def _prompt_end(schema: AgentOutput, request: Request) -> str:
    when = "When you do not call a tool, you" if request.tools or request.handoffs else "You"
    text = json.dumps(schema.plain, ensure_ascii=False, indent=2)
    return (
        f"---\nIMPORTANT: {when} MUST respond with ONLY a valid JSON object matching this schema. "
        "No other text, no markdown code blocks, no explanation.\n"
        f"```json\n{text}\n```"
    )


def _choosing_tools(request: Request, name: str, *, forced: bool) -> Any:
    choice = request.settings.tool_choice
    if choice is None and forced:
        choice = "required"
    elif choice == "none":  # of the agent's own tools; the final one is how it answers
        choice = name
    if choice is request.settings.tool_choice:
        return request.settings
    return dataclasses.replace(request.settings, tool_choice=choice)


def _json_object(settings: Any, *, is_chat: bool) -> Any:
    wanted = {"type": "json_object"}
    body = {"response_format": wanted} if is_chat else {"text": {"format": wanted}}
    return dataclasses.replace(settings, extra_body={**body, **(settings.extra_body or {})})
