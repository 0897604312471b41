"""``kantan-agents run``: one question, one answer, for scripts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import typer

from kantan_agents.agent import Agent
from kantan_agents.cli.database import check_recorded, recording
from kantan_agents.cli.note_runs import note_runs
from kantan_agents.cli.plain import json_text, printable
from kantan_agents.pipeline import Run
from kantan_agents.stages.trim_history import output_text
from kantan_agents.structured import as_dict

AGENT_NAME = "assistant"


def answer(
    question: str,
    *,
    model: str | None,
    instructions: str,
    context: dict[str, Any],
    database: Path | None,
    as_json: bool,
) -> None:
    """Ask ``question`` and print the answer, as text or as the completed context.

    Raises:
        KantanAgentsError: E19 for the model, E6, E18, E20 for the context, E79 for the database: after the
            answer was printed, when the run could not be recorded.
        Exception: What made the run fail.
    """
    runs: list[Run] = []
    agent = Agent(AGENT_NAME, instructions, model=model, middleware=[note_runs(runs)])
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
    result = run.result
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
