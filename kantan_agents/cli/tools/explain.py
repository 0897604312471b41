"""``tools explain``: shows the deciding rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import typer

from kantan_agents.cli.agents.agent_to_run import AgentToRun
from kantan_agents.cli.terminal.console import suppress_output
from kantan_agents.cli.terminal.failures import EXIT_FAILED
from kantan_agents.cli.terminal.plain import json_text, one_line, printable
from kantan_agents.errors import InvalidOptionError, KantanAgentsError, ToolInputError
from kantan_agents.tools.explain import Explanation, explain
from kantan_agents.tools.skills import SkillLoader

if TYPE_CHECKING:
    from kantan_agents.agent import Agent


def explain_tool(
    name: str,
    arguments: str | None,
    rules: dict[str, Any] | None,
    *,
    agent: AgentToRun | None = None,
    skill: str | None = None,
    as_json: bool,
) -> None:
    """Print the explanation for a tool or call.

    A line on stderr reports an allowed tool that the agent lacks.
    """
    missing = False
    if skill is not None and agent is None:
        raise InvalidOptionError(option="--skill", reason="needs --agent, which chooses the skill")
    with suppress_output():
        if agent is None:
            explanation = explain(name, arguments, tool_rules=rules)
        else:
            context = {} if rules is None else {"tool_rules": rules}
            explained = _agent_of(agent)
            if skill is not None:
                from kantan_agents.tools.skills.limits import limit_of

                limit = limit_of(SkillLoader().get_skill_now(skill))
                explained.standing_rules = explained.standing_rules.with_limits(*limit)
            explanation = explained.explain_tool(name, arguments, context)
            missing = explanation.allowed and not _has_tool(explained, name)
    typer.echo(json_text(as_data(explanation)) if as_json else printable(str(explanation)))
    if agent is not None and missing:
        sentence = f"no tool of agent {agent.definition.name!r} is named {name!r}"
        typer.echo(f"warning: {one_line(sentence)}; a program that runs the agent must bring it", err=True)
    if not explanation.allowed:
        raise typer.Exit(EXIT_FAILED)


def _agent_of(named: AgentToRun) -> Agent[Any]:
    # Imported here: without an agent, explaining a tool does not need the SDK.
    from kantan_agents.agent import Agent
    from kantan_agents.agent.delegation import task_tool
    from kantan_agents.testing import ScriptedModel

    definition = attrs.evolve(named.definition, model=None)
    return Agent.from_definition(
        definition, tools=[task_tool(named.loader)], skills=SkillLoader(), model=ScriptedModel([])
    )


def _has_tool(agent: Agent[Any], name: str) -> bool:
    from kantan_agents.tools.facts import facts_of_listed

    # An MCP server may connect later.
    return name.lower().startswith("mcp__") or any(
        name in facts_of_listed(tool).names for tool in agent.unguarded_tools
    )


def as_data(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as JSON data."""
    error = explanation.error
    return {
        "tool": explanation.tool,
        "allowed": explanation.allowed,
        "rule": explanation.rule,
        "layer": explanation.layer,
        "unknown": explanation.unknown,
        "error": None if error is None else _error_data(error),
        "merged": explanation.merged,
        "layers": explanation.layers,
        "remarks": list(explanation.remarks),
    }


def _error_data(error: KantanAgentsError) -> dict[str, str]:
    data = {"code": error.code, "message": str(error)}
    return {**data, "reason": error.reason} if isinstance(error, ToolInputError) else data
