"""Encodes a request for structured output in one form: native schema, final tool, or prompt."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import attrs

from kantan_agents.models.structured.requests.agent_output import AgentOutput
from kantan_agents.models.structured.requests.final_tool import final_tool, final_tool_name
from kantan_agents.models.structured.requests.forms import Form
from kantan_agents.models.structured.requests.request import Request


@attrs.frozen
class Encoded:
    """A request in one form.

    Attributes:
        request: The request to send.
        final_tool: Name of the tool whose arguments are the answer; None without such a tool.
    """

    request: Request
    final_tool: str | None = None


def encoded(request: Request, schema: AgentOutput, form: Form, *, is_chat: bool) -> Encoded:
    """Return a request in the given form.

    Args:
        request: The SDK's request.
        schema: The schema of the answer.
        form: The form.
        is_chat: Whether it is sent to the chat completions API rather than the Responses API.
    """
    if form.mode == "native":
        return Encoded(request)
    bare = request.with_options(output_schema=None)
    if form.mode == "prompt":
        instructions = _appended(bare.instructions, _prompt_suffix(schema, bare))
        settings = _json_object(bare.settings, is_chat=is_chat) if form.json_object else bare.settings
        return Encoded(attrs.evolve(bare, instructions=instructions, settings=settings))
    name = final_tool_name(bare.tools, bare.handoffs)
    changed = attrs.evolve(
        bare,
        instructions=_appended(bare.instructions, _tool_suffix(name)),
        tools=[*bare.tools, final_tool(name, schema.plain)],
        settings=_with_tool_choice(bare, name, forced=form.forces_tool),
    )
    return Encoded(changed, name)


def _appended(instructions: str | None, suffix: str) -> str:
    return f"{instructions}\n\n{suffix}" if instructions else suffix


def _tool_suffix(name: str) -> str:
    # Short, and without mentioning JSON: a model that is instructed to write JSON does not call the tool
    # (spec structured output).
    return f"Give the final answer by calling the tool `{name}`."


def _prompt_suffix(schema: AgentOutput, request: Request) -> str:
    when = "When you do not call a tool, you" if request.tools or request.handoffs else "You"
    text = json.dumps(schema.plain, ensure_ascii=False, indent=2)
    return (
        f"---\nIMPORTANT: {when} MUST respond with ONLY a valid JSON object matching this schema. "
        "No other text, no markdown code blocks, no explanation.\n"
        f"```json\n{text}\n```"
    )


def _with_tool_choice(request: Request, name: str, *, forced: bool) -> Any:
    choice = request.settings.tool_choice
    if choice is None and forced:
        choice = "required"
    elif choice == "none":  # meant for the agent's own tools; the final tool delivers the answer
        choice = name
    if choice is request.settings.tool_choice:
        return request.settings
    return dataclasses.replace(request.settings, tool_choice=choice)


def _json_object(settings: Any, *, is_chat: bool) -> Any:
    wanted = {"type": "json_object"}
    body = {"response_format": wanted} if is_chat else {"text": {"format": wanted}}
    return dataclasses.replace(settings, extra_body={**body, **(settings.extra_body or {})})
