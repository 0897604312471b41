"""``kantan-agents tools explain``: shows which rule of which layer allows or denies a tool."""

from __future__ import annotations

from typing import Any

import typer

from kantan_agents.cli.terminal.console import suppress_output
from kantan_agents.cli.terminal.failures import EXIT_FAILED
from kantan_agents.cli.terminal.plain import json_text, printable
from kantan_agents.errors import KantanAgentsError, ToolInputError
from kantan_agents.tools import Explanation, explain


def explain_tool(name: str, arguments: str | None, rules: dict[str, Any] | None, *, as_json: bool) -> None:
    """Print the explanation for a tool, or for one call.

    Raises:
        KantanAgentsError: E7, E20, E22 for an installed provider.
        Exit: With code 1, the tool or the call is refused.
    """
    with suppress_output():
        explanation = explain(name, arguments, tool_rules=rules)
    typer.echo(json_text(as_data(explanation)) if as_json else printable(str(explanation)))
    if not explanation.allowed:
        raise typer.Exit(EXIT_FAILED)


def as_data(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as JSON data."""
    error = explanation.error
    return {
        "tool": explanation.tool,
        "allowed": explanation.allowed,
        "rule": explanation.rule,
        "layer": explanation.layer,
        "error": None if error is None else _error_data(error),
        "merged": explanation.merged,
        "layers": explanation.layers,
    }


def _error_data(error: KantanAgentsError) -> dict[str, str]:
    data = {"code": error.code, "message": str(error)}
    return {**data, "reason": error.reason} if isinstance(error, ToolInputError) else data
