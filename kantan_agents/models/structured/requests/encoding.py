"""Encodes structured output requests."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, Final

import attrs

from kantan_agents.models.structured.requests.agent_output import AgentOutput
from kantan_agents.models.structured.requests.final_tool import final_tool, final_tool_name
from kantan_agents.models.structured.requests.forms import Form
from kantan_agents.models.structured.requests.request import Request

EXAMPLE_WORDS: Final = "Reply with ONLY a JSON object in this form, with your own values:"
"""Precedes the example."""


@attrs.frozen
class Encoded:
    """A request in one form; ``final_tool`` is the name of its final tool, if any."""

    request: Request
    final_tool: str | None = None


def encoded(request: Request, schema: AgentOutput, form: Form, *, is_chat: bool) -> Encoded:
    """Return a request in the given form."""
    if form.mode == "native":
        return Encoded(request)
    bare = request.with_options(output_schema=None)
    if form.is_example:
        return Encoded(_with_example(bare, example_text(schema)))
    if form.mode == "prompt":
        settings = bare.settings
        if form.json_object:
            wanted = {"type": "json_object", **({"schema": schema.plain} if form.sends_schema else {})}
            settings = _with_format(settings, wanted, is_chat=is_chat)
        text = schema_text(schema, beside_tools=bool(bare.tools or bare.handoffs))
        return Encoded(attrs.evolve(bare, instructions=_appended(bare.instructions, text), settings=settings))
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
    # Models that are instructed to write JSON call no tool (spec structured output).
    return f"Give the final answer by calling the tool `{name}`."


def schema_text(schema: AgentOutput, *, beside_tools: bool) -> str:
    """Return the prompt form's instructions (spec structured output)."""
    when = "When you do not call a tool, you" if beside_tools else "You"
    text = json.dumps(schema.plain, ensure_ascii=False, indent=2)
    return (
        f"---\nIMPORTANT: {when} MUST respond with ONLY a valid JSON object matching this schema. "
        "No other text, no markdown code blocks, no explanation.\n"
        f"```json\n{text}\n```"
    )


def example_text(schema: AgentOutput) -> str:
    """Return the example form's addition to the user's message.

    Small models ignore a schema but follow a final example (``benchmarks/valid_shares.py``).
    """
    return f"{EXAMPLE_WORDS}\n{schema.example}"


def _with_example(request: Request, text: str) -> Request:
    """Append to the user's last message, or else to the instructions."""
    given = request.input
    if isinstance(given, str):
        return attrs.evolve(request, input=f"{given}\n\n{text}")
    last: Any = given[-1] if given else None
    content = last.get("content") if isinstance(last, Mapping) and last.get("role") == "user" else None
    if isinstance(content, str):
        content = f"{content}\n\n{text}"
    elif isinstance(content, list):
        content = [*content, {"type": "input_text", "text": text}]
    else:  # not every server accepts a user message after a tool's result
        return attrs.evolve(request, instructions=_appended(request.instructions, text))
    return attrs.evolve(request, input=[*given[:-1], {**last, "content": content}])


def _with_tool_choice(request: Request, name: str, *, forced: bool) -> Any:
    choice = request.settings.tool_choice
    if choice is None and forced:
        choice = "required"
    elif choice == "none":  # meant for the agent's own tools
        choice = name
    if choice is request.settings.tool_choice:
        return request.settings
    return dataclasses.replace(request.settings, tool_choice=choice)


def _with_format(settings: Any, wanted: dict[str, Any], *, is_chat: bool) -> Any:
    body = {"response_format": wanted} if is_chat else {"text": {"format": wanted}}
    return dataclasses.replace(settings, extra_body={**body, **(settings.extra_body or {})})
