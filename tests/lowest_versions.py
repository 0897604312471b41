"""A program for an environment with the lowest versions that pyproject.toml allows: they must work.

``nox -s lowest_versions-3.10`` and ``-3.13`` install them and run this file.
"""

from __future__ import annotations

import asyncio
import importlib
import io
import pkgutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import kantan_agents
from kantan_agents import Agent, ToolRetrieval, TraceStore, record_traces
from kantan_agents.cli.app import invoke, make_commands
from kantan_agents.durable import Durable, DurableRuns
from kantan_agents.testing import OfflineServer


def read(path: str) -> str:
    """Return the text of a file."""
    return f"{path}: buy milk"


def delete(path: str) -> str:
    """Delete a file."""
    raise AssertionError(f"{path} was deleted although the rules deny it")


def import_everything() -> None:
    """Import every module but those for pytest, which is not installed."""
    for found in pkgutil.walk_packages(kantan_agents.__path__, "kantan_agents."):
        if found.name.rpartition(".")[2] not in {"__main__", "evaluated_test", "pytest_plugin"}:
            importlib.import_module(found.name)


def commands(command: Any, *path: str) -> Iterator[tuple[str, ...]]:
    """Yield the names of a command and of all below it."""
    yield path
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, *path, name)


def call(*arguments: str) -> str:
    """Call the command line and return what it has printed."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = invoke(arguments)
    assert code == 0, (arguments, code, out.getvalue(), err.getvalue())
    return out.getvalue()


def run_agents(traces: Path) -> None:
    """Run an agent with a rule and a structured output, and find its runs."""
    record_traces(traces)
    replies = [
        {"tool": "read", "arguments": {"path": "notes.txt"}},
        {"tool": "delete", "arguments": {"path": "notes.txt"}},
        {"answer": "milk"},
    ]
    with OfflineServer(replies) as server:
        agent = Agent(
            "reader",
            "Answer.",
            model=server.bundle("gpt-6.1-terra"),
            tools=[read, delete],
            tool_retrieval=ToolRetrieval(),
            output_type=dict[str, str],
            output_dest="answer",
        )
        context = agent.run("What is there to buy?", {"tool_rules": {"deny": ["delete"]}})
    assert context["answer"] == {"answer": "milk"}
    (trace,) = TraceStore(traces).traces(agent="reader")
    assert trace.metadata["agent_name"] == "reader"
    assert "reader" in call("traces", "list", "--db", str(traces))
    assert "reader" in call("traces", "search", "milk", "--db", str(traces))


async def make_durable_run(database: Path) -> None:
    """Make a run of an agent that is durable."""
    with OfflineServer(["Booked."]) as server:
        agent = Agent("clerk", "Book.", model=server.bundle(), middleware=[Durable()])
        async with DurableRuns(f"sqlite:///{database}", agents=[agent]):
            context = await agent.run_async("Book a room.")
    assert context["result"].final_output == "Booked."


def main() -> None:
    """Check everything, and say what was checked."""
    import_everything()
    every = sorted(commands(make_commands()))
    for path in every:
        assert call(*path, "--help")
    with tempfile.TemporaryDirectory() as folder:
        call("demo", "--db", str(Path(folder, "demo.sqlite3")))
        run_agents(Path(folder, "traces.sqlite3"))
        asyncio.run(make_durable_run(Path(folder, "runs.sqlite3")))
    print(f"Python {sys.version_info[:2]}: {len(every)} commands have help, and agents run")


if __name__ == "__main__":
    main()
