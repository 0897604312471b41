"""One decision in a process of its own, away from any event loop."""

from __future__ import annotations

import json
import sys
from typing import Any

from kantan_agents.tool_rules.decide import ToolFacts, decide_entries
from kantan_agents.tool_rules.rules import ToolRules


def decide(task: dict[str, Any]) -> dict[str, Any]:
    """Return the decision about a call by its entries and parameter rules.

    Args:
        task: ``rules`` in the public dict shape, ``names`` and ``parameter`` of the tool, and the
            ``arguments`` of the call.

    Returns:
        ``allowed``, ``key`` and ``entry`` of the decision; of a broken parameter rule also ``keyword``,
        ``param_name`` and ``limit``.
    """
    rules, tool = ToolRules.parse(task["rules"]), ToolFacts(tuple(task["names"]), task["parameter"])
    decision = decide_entries(rules, tool, task["arguments"])
    checks = rules.checks(tool.names) if decision.allowed else None
    breach = checks.breach(tool.name, task["arguments"]) if checks is not None else None
    if breach is None:
        return {"allowed": decision.allowed, "key": decision.key, "entry": decision.entry}
    error = breach.error
    found = {"keyword": error.keyword, "param_name": error.param_name, "limit": error.limit}
    return {"allowed": False, "key": "params", "entry": breach.entry, **found}


def main() -> None:
    """Read a task as JSON from standard input; write the decision as JSON to standard output."""
    json.dump(decide(json.load(sys.stdin)), sys.stdout)
