"""``kantan-agents run``: one question, one answer, for scripts."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from kantan_agents.agent import Agent
from kantan_agents.cli.agents.named import NamedAgent
from kantan_agents.cli.run.database import check_recorded, recording
from kantan_agents.cli.run.note_runs import note_runs
from kantan_agents.cli.terminal.plain import json_text, printable
from kantan_agents.definitions import MODELS
from kantan_agents.delegation import task_tool
from kantan_agents.interception import Middleware
from kantan_agents.middleware import SlashCommands
from kantan_agents.middleware.slash_commands.rules import USER_RULES
from kantan_agents.pipeline import Run, Stage, run_result
from kantan_agents.stages.trim_history import output_text
from kantan_agents.structured import as_dict
from kantan_agents.tool_rules import ToolRulesMode

AGENT_NAME = "assistant"


def answer(
    question: str,
    asked: str | NamedAgent,
    *,
    model: str | None,
    context: dict[str, Any],
    database: Path | None,
    as_json: bool,
    commands: bool = False,
) -> None:
    """Ask ``question`` and print the answer, as text or as the completed context.

    Args:
        question: The question.
        asked: The instructions of an agent made for it, or one from a file.
        model: The model; for one from a file where that gives no full name.
        context: The context of the run.
        database: Where to record it, if anywhere.
        as_json: Whether to print the completed context.
        commands: Whether a question such as ``/read notes.txt`` runs a tool.

    Raises:
        KantanAgentsError: E8, E54, E55, E56 for a command, E19 for the model, E6, E18, E20 for the context,
            E79 for the database: after the answer was printed, when the run could not be recorded.
        Exception: What made the run fail.
    """
    runs: list[Run] = []
    # An agent that is delegated to comes after the one that delegates.
    middleware: list[Stage | Middleware] = [note_runs(runs)]
    if commands:
        middleware.append(SlashCommands(_user_rules(context)))
    if isinstance(asked, str):
        agent = Agent(AGENT_NAME, asked, model=model, middleware=middleware)
    else:
        agent = _from_file(asked, model, middleware)
    with recording(database) as recorder:
        agent.run(question, context)
        run = runs[0]
        if as_json:
            typer.echo(context_json(run, recorded=recorder is not None))
        else:
            text = output_text(run.result)
            # A pipe gets every byte of the answer, a terminal nothing that could steer it.
            typer.echo(printable(text) if sys.stdout.isatty() else text, color=True)
        if recorder is not None:
            check_recorded(recorder)


def _user_rules(context: dict[str, Any]) -> ToolRulesMode | Mapping[str, Any]:
    """Return what commands may run: all the agent has, but for what the rules of the context say.

    Rules for models count for commands where there are none for users: who has written them has meant whoever
    runs this program.
    """
    stated = context.get(USER_RULES)
    rules = context.get("tool_rules") if stated is None else stated
    if rules is None or (isinstance(rules, Mapping) and rules.get("allow") is None):
        return {**(rules or {}), "allow": "*"}
    return rules  # type: ignore[no-any-return]  # what is wrong with them is an error there


def _from_file(named: NamedAgent, model: str | None, middleware: list[Stage | Middleware]) -> Agent:
    return Agent.from_definition(
        named.definition,
        tools=[task_tool(named.loader)],
        model=model,
        # Short names are those of somebody's provider; with --model the files run on any. Those that stand
        # for no model stay: they are for the model of whoever delegates.
        models=None if model is None else {short: model for short, known in MODELS.items() if known},
        allow_env=False,
        middleware=middleware,
    )


def context_json(run: Run, *, recorded: bool) -> str:
    """Return the completed context as JSON; on one line, unless a person reads it.

    Args:
        run: The finished run.
        recorded: Whether its trace is in a database, so that its id leads somewhere.
    """
    context = {**run.context, "result": result_data(run, recorded=recorded)}
    return json_text(context, default=str)


def result_data(run: Run, *, recorded: bool) -> dict[str, Any]:
    """Return as JSON data what of the SDK's ``RunResult`` is worth having outside the process."""
    result = run_result(run.context)
    usage = result.context_wrapper.usage
    structured = as_dict(result.final_output, json=True)
    return {
        "final_output": result.final_output if structured is None else structured,
        "last_agent": result.last_agent.name,
        "run_id": run.id,
        "trace_id": run.trace_id if recorded else None,
        "usage": {
            "requests": usage.requests,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "total_tokens": usage.total_tokens,
        },
    }
