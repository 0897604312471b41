"""A project with recorded runs, and the commands that only read it: for ``startup.py`` and its test."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from kantan_agents import Agent, Prompt, record_traces
from kantan_agents.lab.evaluation import Case, Dataset, FinishedCase, evaluate, evaluator
from kantan_agents.lab.rollout import Rollout
from kantan_agents.testing import ScriptedModel, ScriptedToolCall
from kantan_agents.traces.store import TraceStore

AGENT_FILE = """---
name: helper
description: Use it for orders.
tools: Read, Grep
---
Answer briefly.
"""
SKILL_FILE = """---
name: orders
description: How to find an order.
---
Look into the list.
"""

NEED_THE_SDK = {
    "chat": "runs an agent",
    "demo": "runs an agent",
    "run": "runs an agent",
    "worker": "runs agents",
    "improve": "runs agents",
    "eval run": "runs an agent",
    "eval judge": "runs a judge",
    "replay cohort": "runs an agent",
    "replay recordings": "runs an agent on recordings",
    "models check": "runs agents that ask the model",
    "mcp check": "connects to MCP servers with the SDK's clients",
    "tools list": "asks tool providers, which make tools of the SDK",
    **{
        f"{group} {name}": "opens DurableRuns, which can make runs"
        for group, names in {
            "runs": ("list", "show", "events", "cancel", "resume", "prune"),
            "approvals": ("list", "approve", "reject"),
        }.items()
        for name in names
    },
}
"""Commands that import the SDK, and why they need it."""

COUNT = {
    *("eval compare", "eval report", "eval label"),
    *("rollout history", "rollout promote", "rollout status", "rollout stop"),
    "traces open",
}
"""Commands with statistics, which need numpy."""

CONVERT = {"completion", "mcp trust", "traces prune"}
"""Commands with a choice, a path or a number among these arguments, which Typer converts with pydantic."""

ENDLESS = {"traces open", "traces tail"}
"""Commands that run until Ctrl-C."""


@evaluator(version="1")
def length(finished: FinishedCase) -> float:
    """Return the length of the answer."""
    return float(len(finished.text))


def commands(folder: Path) -> dict[str, list[str]]:
    """Return arguments for each command that needs no SDK, for the project in ``folder``.

    The commands run in this order: some add to the project.
    """
    first, second = (
        one.trace_id for one in TraceStore(folder / "traces.sqlite3").traces(agent="shop", limit=2)
    )
    return {
        "completion": ["bash"],
        "agents list": [],
        "agents show": ["helper"],
        "agents search": ["orders"],
        "agents validate": [],
        "agents fix": ["--dry-run"],
        "agents new": ["other", "--description", "Use it for something else."],
        "skills list": [],
        "skills validate": [],
        "mcp list": [],
        "mcp trust": [".mcp.json"],
        "tools check": ["rules.json"],
        "tools explain": ["Bash", "--rules", "rules.json"],
        "tools what-if": ["rules.json"],
        "traces list": [],
        "traces show": [first],
        "traces search": ["question"],
        "traces failed": [],
        "traces prompts": [],
        "traces diff": [first, second],
        "traces report": ["--output", "report.html"],
        "traces export": ["--output", "runs.jsonl"],
        "traces save": [first, "--output", "run.json"],
        "traces index": [],
        "traces copy": ["traces.sqlite3", "copy.sqlite3"],
        "traces prune": ["--keep", "1000"],
        "traces tail": [],
        "traces open": ["--no-browser"],
        "eval list": [],
        "eval show": ["LAST"],
        "eval compare": ["v1", "v2"],
        "eval report": ["v1", "v2", "--output", "comparison.html"],
        "eval label": ["LAST", "--metric", "length", "--by", "mia"],
        "eval dataset": ["questions.jsonl"],
        "eval diff": ["questions.jsonl", "questions.jsonl"],
        "rollout status": [],
        "rollout history": ["support"],
        "rollout promote": ["support"],
        "rollout stop": ["support"],
    }


def make_project(folder: Path, runs: int) -> None:
    """Write the files of a project into ``folder``, and the databases of its runs.

    Args:
        folder: An empty folder.
        runs: Number of recorded runs of the agent ``shop``.
    """
    for name, text in {
        ".claude/agents/helper.md": AGENT_FILE,
        ".claude/skills/orders/SKILL.md": SKILL_FILE,
        ".mcp.json": json.dumps({"mcpServers": {"files": {"command": "files"}}}),
        "rules.json": json.dumps({"deny": ["Bash"]}),
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    traces = folder / "traces.sqlite3"
    recorder = record_traces(traces)
    asyncio.run(_record(traces, runs))
    _evaluate(traces)
    recorder.shutdown()


async def _record(traces: Path, runs: int) -> None:
    rolled = Rollout({"v1": _prompt("v1"), "v2": _prompt("v2")}, ramp=(0.5, 1), unit="user.id", store=traces)
    support = Agent("support", rolled, model=_model())
    for number in range(10):
        await support.run_async("question", {"user": {"id": number}})
    look = ScriptedModel([ScriptedToolCall("_look", {"order": "7"}), "Fine."])
    await Agent("clerk", "Help.", model=look, tools=[_look], tool_providers=None).run_async("question")
    for number in range(runs):
        await _shop("v1").run_async(f"question {number}")


def _evaluate(traces: Path) -> None:
    cases = Dataset("questions", [Case(f"question {number}", id=f"c{number}") for number in range(3)])
    evaluate({name: _shop(name) for name in ("v1", "v2")}, cases, [length], name="shop", store=traces)


def _look(order: str) -> str:
    """Look for an order."""
    return order


def _shop(version: str) -> Agent[Any]:
    return Agent("shop", _prompt(version), model=_model(), tool_providers=None)


def _prompt(version: str) -> Prompt:
    return Prompt("shop", version, f"Answer as {version}.")


def _model() -> ScriptedModel:
    return ScriptedModel(lambda _: "Fine.")


if __name__ == "__main__":
    make_project(Path(sys.argv[1]), int(sys.argv[2]))
