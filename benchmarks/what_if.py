"""Measures how long other tool rules take to be tried on recorded calls: ``python -m benchmarks.what_if``."""

from __future__ import annotations

import asyncio
import platform
import sqlite3
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import agents

from kantan_agents import Agent, SQLiteRecorder, TraceStore
from kantan_agents.lab.rule_changes import what_if
from kantan_agents.testing import Reply, ScriptedModel, ScriptedToolCall
from kantan_agents.traces.ids import new_run_id, trace_id_of

CALLS = 100_000
CALLS_OF_RUN = 5
TOOLS = 10
_MARK = "item-00000000"

RECORDED = {
    "allow": [f"tool_{number}" for number in range(TOOLS - 1)],
    "params": {"tool_1": {"query": {"maxLength": 200}}},
}
QUESTIONS: dict[str, dict[str, Any]] = {
    "names": {"allow": "*", "deny": ["tool_3", "tool_8*"]},
    "calls": {"allow": ["tool_*"], "deny": ["tool_2(item-0000:*)", "tool_3(drop:*)"]},
    "parameters": {
        "params": {
            f"tool_{number}": {"query": {"pattern": "^item-[0-9]*[02468]$"}} for number in range(TOOLS)
        }
    },
}


def record(path: Path) -> None:
    """Record one run with a call of each kind, to be copied."""
    tools = [_tool(number) for number in range(TOOLS)]
    calls = [
        ScriptedToolCall(f"tool_{number}", {"query": _MARK, "limit": number})
        for number in range(TOOLS - CALLS_OF_RUN, TOOLS)
    ]
    model = ScriptedModel([Reply(tool_calls=[call]) for call in calls] + ["Done."])
    agent = Agent("support", "Help the customer.", model=model, tools=tools, tool_providers=None)
    recorder = SQLiteRecorder(path)
    agents.set_trace_processors([recorder])
    asyncio.run(agent.run_async("Go", {"tool_rules": RECORDED}))
    agents.set_trace_processors([])
    recorder.shutdown()


def _tool(number: int) -> Any:
    @agents.function_tool(name_override=f"tool_{number}")
    def look_up(query: str, limit: int) -> str:
        return f"{query} {limit}"

    return look_up


def fill(path: Path, runs: int) -> None:
    """Copy the run of a file, with new ids and other arguments, until the file has ``runs`` of them."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.row_factory = sqlite3.Row
        (trace,) = connection.execute("SELECT * FROM traces").fetchall()
        spans = connection.execute("SELECT * FROM spans ORDER BY rowid").fetchall()
        (run,) = connection.execute("SELECT * FROM kantan_agents_runs").fetchall()
        own_run = bytes(run["run_id"]).hex()
        for number in range(1, runs):
            run_id = new_run_id()
            new = {trace["id"]: trace_id_of(run_id), own_run: run_id, _MARK: f"item-{number:08}"}
            _insert(connection, "traces", trace, new)
            for place, span in enumerate(spans):
                _insert(connection, "spans", span, {**new, span["id"]: f"span_{number:016x}{place:08x}"})
            _insert(connection, "kantan_agents_runs", run, new, id=None, run_id=bytes.fromhex(run_id))


def _insert(
    connection: sqlite3.Connection, table: str, row: sqlite3.Row, new: dict[str, str], **values: Any
) -> None:
    copied = {name: _renamed(row[name], new) for name in row.keys() if name != "ingest_seq"} | values  # noqa: SIM118
    marks = ",".join("?" * len(copied))
    connection.execute(f"INSERT INTO {table}({','.join(copied)}) VALUES ({marks})", [*copied.values()])


def _renamed(value: Any, new: dict[str, str]) -> Any:
    if isinstance(value, str):
        for before, after in new.items():
            value = value.replace(before, after)
    return value


def seconds_for(path: Path, rules: dict[str, Any]) -> tuple[float, int, int]:
    """Return how long a question takes, as the command asks it, and how many calls are judged and flip."""
    since = datetime.now(timezone.utc) - timedelta(days=30)
    begun = time.perf_counter()
    answer = what_if(rules, TraceStore(path).recorded_calls(started_from=since))
    return time.perf_counter() - begun, answer.judged, len(answer.flips)


def main(arguments: Sequence[str]) -> None:
    """Measure each question; an argument is the number of calls."""
    calls = int(arguments[0]) if arguments else CALLS
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "traces.sqlite3"
        record(path)
        fill(path, calls // CALLS_OF_RUN)
        print(f"{platform.machine()}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}")
        print(f"{path.stat().st_size / 1e6:.0f} MB, {calls // CALLS_OF_RUN} runs")
        for name, rules in QUESTIONS.items():
            taken, judged, flips = seconds_for(path, rules)
            print(f"{name:<12}{judged} calls judged in {taken:.1f} s, {flips} flip")


if __name__ == "__main__":
    main(sys.argv[1:])
