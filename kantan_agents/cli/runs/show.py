"""``kantan-agents runs show``: prints a durable run."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import typer

from kantan_agents.cli.runs.list import STYLES
from kantan_agents.cli.terminal.console import pairs, plain, terminal
from kantan_agents.cli.terminal.durable_runs import with_runs
from kantan_agents.cli.terminal.plain import json_text, one_line
from kantan_agents.cli.terminal.show_quantities import local_time
from kantan_agents.durable.records import whole_run


def show_run(database: str, application: str, run_id: str, *, as_json: bool) -> None:
    """Print a run with its waiting calls."""
    found = with_runs(database, lambda runs: whole_run(runs, run_id), application)
    if as_json:
        typer.echo(json_text(found))
        return
    console = terminal()
    console.print(pairs([entry for entry in _entries(found) if entry[1]]))
    for call in found["approvals"]:
        console.print()
        console.print(pairs(_call_entries(call)))
    if found["output"] is not None:
        console.print()
        output = found["output"]
        console.print(plain(output if isinstance(output, str) else json_text(output)), soft_wrap=True)


def _entries(run: dict[str, Any]) -> Iterator[tuple[object, object]]:
    yield "run", one_line(run["run_id"])
    yield "status", plain(run["status"], STYLES.get(run["status"], ""))
    yield "agent", one_line(run["agent"])
    yield "queue", one_line(run["queue"] or "")
    yield "created", _time(run["created_at"])
    yield "changed", _time(run["updated_at"])
    yield "trace", one_line(run["trace_id"] or "")
    yield "goes on as", one_line(run["next_run"] or "")
    yield "error", one_line(run["error"] or "")


def _call_entries(call: dict[str, Any]) -> Iterator[tuple[object, object]]:
    yield "call", one_line(call["call_id"])
    yield "tool", one_line(call["tool"])
    yield "arguments", one_line(call["arguments"])
    yield "asked", _time(call["asked_at"])
    answer = f"{call['answer']} by {call['answered_by']}, {_time(call['answered_at'])}"
    yield "answer", one_line(answer) if call["answer"] else "waits"


def _time(text: str | None) -> str:
    return "" if text is None else local_time(datetime.fromisoformat(text))
