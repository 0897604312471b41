"""What a model says when it delegates."""

from __future__ import annotations

from typing import Any

import attrs

from kantan_agents.errors import ToolInputError
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
"""JSON Schema of the tool's arguments."""


@attrs.frozen
class Request:
    """A task for an agent.

    Attributes:
        agent: Name of the agent, as the model wrote it.
        prompt: The task.
        description: The task in a few words.
    """

    agent: str
    prompt: str
    description: str = ""


def read_request(tool: str, arguments: str) -> Request:
    """Read the arguments of a call.

    Raises:
        ToolInputError: E10, they are no JSON object, or a text is missing or blank.
    """
    given = parse_arguments(tool, arguments)
    texts = {name: given.get(name) for name in (SUBAGENT_TYPE, "prompt")}
    for name, text in texts.items():
        if not isinstance(text, str) or not text.strip():
            raise ToolInputError(tool_name=tool, reason=f"{name} must be a text that is not empty")
    description = given.get("description")
    return Request(
        agent=str(texts[SUBAGENT_TYPE]),
        prompt=str(texts["prompt"]),
        description=description if isinstance(description, str) else "",
    )
