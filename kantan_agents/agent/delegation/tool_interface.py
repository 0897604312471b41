"""The delegation tool's description, arguments and results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from kantan_agents.agent import Agent
from kantan_agents.agent.stages.trim_history import output_text
from kantan_agents.errors import DelegatedAgentError, KantanAgentsError, ToolInputError
from kantan_agents.subagent_files import AgentDefinition
from kantan_agents.support.storable_text import whole_text
from kantan_agents.tool_rules import parse_arguments

SUBAGENT_TYPE = "subagent_type"

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "description": {"type": "string", "description": "The task in three to five words."},
        "prompt": {
            "type": "string",
            "description": "The whole task, with all that is needed to know for it.",
        },
        SUBAGENT_TYPE: {"type": "string", "description": "Name of the agent."},
    },
    "required": ["description", "prompt", SUBAGENT_TYPE],
    "additionalProperties": False,
}
NO_ANSWER = "The agent has finished without an answer."

_INTRODUCTION = (
    "Have another agent do a task and get its answer. It sees nothing of this conversation, only the "
    "prompt, so say there all that it needs to know. Several calls at once are worked on at the same time."
)
_MAX_AGENT_DESCRIPTION = 500
_MAX_DESCRIPTION = 16_000


@attrs.frozen
class DelegationRequest:
    """The arguments of one call."""

    agent: str
    prompt: str
    description: str = ""


def tool_description(definitions: Iterable[AgentDefinition]) -> str:
    """Return the tool's description with the available agents.

    The model reads it every turn, so most of many agents lack descriptions.
    """
    lines = [_INTRODUCTION, "", "Values of subagent_type:"]
    length, remaining = 0, list(definitions)
    while remaining and length < _MAX_DESCRIPTION:
        definition = remaining.pop(0)
        lines.append(f"- {definition.name}: {_shorten(definition.description)}")
        length += len(lines[-1])
    if remaining:
        names = _names_within(remaining, _MAX_DESCRIPTION // 4)
        lines.append(f"- also: {', '.join(names)}" if names else "")
        if len(names) < len(remaining):
            lines[-1] += f", and {len(remaining) - len(names)} more"
    return "\n".join(lines)


def _names_within(definitions: list[AgentDefinition], max_chars: int) -> list[str]:
    names: list[str] = []
    for definition in definitions:
        max_chars -= len(definition.name)
        if max_chars < 0:
            break
        names.append(definition.name)
    return names


def _shorten(text: str) -> str:
    words = " ".join(text.split())
    if len(words) <= _MAX_AGENT_DESCRIPTION:
        return words
    return f"{words[: _MAX_AGENT_DESCRIPTION - 3]}..."


def read_request(tool: str, arguments: str) -> DelegationRequest:
    """Parse the arguments; E10 if they are not JSON, or a string is missing or blank."""
    given = parse_arguments(tool, arguments)
    texts = {name: given.get(name) for name in (SUBAGENT_TYPE, "prompt")}
    for name, text in texts.items():
        if not isinstance(text, str) or not text.strip():
            raise ToolInputError(tool_name=tool, reason=f"{name} must be a text that is not empty")
    description = given.get("description")
    return DelegationRequest(
        agent=str(texts[SUBAGENT_TYPE]),
        prompt=str(texts["prompt"]),
        description=description if isinstance(description, str) else "",
    )


def answer_of(agent: Agent, result: Any) -> str:
    """Return a child's answer; E35 if it stopped for an approval, which it cannot get."""
    interruptions = getattr(result, "interruptions", None)
    if interruptions:
        tools = ", ".join(sorted({str(item.name) for item in interruptions}))
        reason = f"a call of {tools} needs an approval, which a delegated run cannot wait for"
        raise DelegatedAgentError(agent=agent.name, reason=reason)
    return output_text(result) or NO_ANSWER


def delegation_error(name: str, error: Exception) -> DelegatedAgentError:
    """Return ``error`` as a failure of an agent, with its cause."""
    if isinstance(error, DelegatedAgentError):
        return error
    kind = "" if isinstance(error, KantanAgentsError) else f"{type(error).__name__}: "
    # The message goes to a model. A lone surrogate would make that request fail as well.
    reason = whole_text(f"{kind}{_message_of(error)}")
    failure = DelegatedAgentError(agent=name, reason=reason)
    failure.__cause__ = error
    return failure


def _message_of(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - a user's class may raise anything in __str__
        return "its message cannot be read"
