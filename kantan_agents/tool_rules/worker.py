"""The program of the process that decides about one call, started by ``tools.guards.check``."""

from __future__ import annotations

import json
import sys
from typing import Any

from kantan_agents.errors import ToolInputError, ToolParameterError
from kantan_agents.tool_rules.arguments import parse_arguments
from kantan_agents.tool_rules.decide import ToolFacts, decide_call
from kantan_agents.tool_rules.rules import ToolRules


def decide(task: dict[str, Any]) -> dict[str, Any]:
    """Return the decision about a call.

    Args:
        task: ``rules`` in the public dict shape; ``names``, ``parameter`` and ``schema`` of the tool; the
            ``arguments`` of the call as JSON text.

    Returns:
        ``allowed``, ``key`` and ``entry`` of the decision; for a broken parameter rule also ``keyword``,
        ``param_name`` and ``limit``, for invalid arguments ``reason``.
    """
    tool = ToolFacts(tuple(task["names"]), task["parameter"], task["schema"])
    try:
        arguments = parse_arguments(tool.name, task["arguments"])
        decision = decide_call(ToolRules.parse(task["rules"]), tool, arguments)
    except ToolInputError as error:
        return {"allowed": False, "key": "params", "entry": tool.name, "reason": error.reason}
    found = {"allowed": decision.allowed, "key": decision.key, "entry": decision.entry}
    broken = decision.error
    if isinstance(broken, ToolParameterError):
        found |= {"keyword": broken.keyword, "param_name": broken.param_name, "limit": broken.limit}
    return found


def main() -> None:
    """Read a task as JSON from standard input; write the decision as JSON to standard output."""
    json.dump(decide(json.load(sys.stdin)), sys.stdout)
