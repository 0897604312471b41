"""Runs ``kantan-agents improve`` in a process of its own, against the server of a shop."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tests.lab.improve.shops import JUDGES, OLD, Shop
from tests.programs import Preloaded, Program

MODULE = f'''
from kantan_agents import RUBRIC, Agent, Prompt


def status(number: str) -> str:
    """Return the status of an order."""
    raise SystemError("a tool has run")


def refund(number: str) -> str:
    """Refund an order."""
    raise SystemError("a tool has run")


support = Agent("support", Prompt("support", "v1", {OLD!r}), model="gpt-5-mini", tools=[status, refund])
plain = Agent("support", "Help.", model="gpt-5-mini")
judging = Prompt("critic", "v1", {JUDGES!r} + " from 0 to 1.")
critic = Agent("critic", judging, model="gpt-5-mini", output_type=RUBRIC)


def greets(finished):
    return "Dear" in finished.text
'''
PLACES = ("folder", "files", "rollout_code", "rollout_command")
"""What a summary has that depends on where it is."""


def write_module(folder: Path) -> str:
    """Write the module with the agents, and return its name."""
    name = f"shop_{abs(hash(folder))}"  # Python keeps a module that was imported
    (folder / f"{name}.py").write_text(MODULE)
    return name


def arguments(module: str, db: Path, *more: str) -> list[str]:
    """Return the command line of a search."""
    given = {"--agent": f"{module}:support", "--judge": f"{module}:critic", "--db": str(db), "--budget": "1M"}
    return ["improve", "support", *(part for pair in given.items() for part in pair), *more]


def start(preloaded: Preloaded, made: Shop, folder: Path, command: list[str]) -> Program:
    """Start the program in a folder."""
    environment = {
        **os.environ,
        **made.server.environment(),
        "PYTHONPATH": str(folder),
    }
    program = ["-m", "kantan_agents", *command]
    return preloaded.popen(program, cwd=folder, env=environment, encoding="utf-8")


def summary_of(folder: Path) -> dict[str, Any]:
    """Return the summary in a working folder, without what depends on where it is."""
    data = json.loads((folder / "summary.json").read_text())
    return {key: value for key, value in data.items() if key not in PLACES}
