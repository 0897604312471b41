"""A plain install runs agents with rules and traces, the demo and the commands, without what extras bring."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

# Refuses the packages of all extras, and those that they bring.
BLOCKED = """
import sys
from kantan_agents.support.extras import EXTRAS

class Blocked:
    names = {module.partition(".")[0] for extra in EXTRAS.values() for module in extra.modules}
    names |= {"rapidfuzz", "scipy", "wcwidth"}

    def find_spec(self, name, path=None, target=None):
        is_otel = name.partition(".")[0] == "opentelemetry"  # its API is a dependency of the package mcp
        if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter")) or (
            not is_otel and name.partition(".")[0] in self.names
        ):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

assert not Blocked.names & set(sys.modules)
sys.meta_path.insert(0, Blocked())
"""

AGENT = """
from kantan_agents import Agent, TraceStore, record_traces
from kantan_agents.testing import OfflineServer

def read(path: str) -> str:
    "Return the text of a file."
    return "buy milk"

def delete(path: str) -> str:
    "Delete a file."
    raise AssertionError

replies = [
    {"tool": "read", "arguments": {"path": "a.txt"}},
    {"tool": "delete", "arguments": {"path": "a.txt"}},
    {"tool": "raed", "arguments": {"path": "a.txt"}},
    "Milk.",
]
record_traces("traces.sqlite3")
with OfflineServer(replies) as server:
    agent = Agent("reader", "Answer.", model=server.bundle(), tools=[read, delete])
    context = agent.run("What is there to buy?", {"tool_rules": {"deny": ["delete"]}})
assert context["result"].final_output == "Milk."
assert len(TraceStore("traces.sqlite3").traces(agent="reader")) == 1
"""

COMMANDS = """
import io, json
from contextlib import redirect_stderr, redirect_stdout
from kantan_agents.cli.app import invoke, make_commands

def run(*arguments):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = invoke(arguments)
    return code, out.getvalue(), err.getvalue()

outcomes = {name: run(name, "--help")[0] for name in make_commands().commands}
outcomes["demo"] = run("demo", "--db", "traces.sqlite3")[0]
for given in (["traces", "list"], ["traces", "show", "LAST"], ["tools", "list"], ["skills", "list"]):
    outcomes[" ".join(given)] = run(*given)[0]
needs = [
    ["chat"],
    ["eval", "list"],
    ["rollout", "status"],
    ["runs", "list"],
    ["traces", "list", "--db", "postgresql://127.0.0.1:1/none"],
    ["traces", "open"],
    ["traces", "report", "LAST", "--output", "report.html"],
]
print(json.dumps([outcomes, {" ".join(given): run(*given) for given in needs}]))
"""

NAMES = """
import contextlib, importlib, inspect, io, json, pkgutil, pydoc, typing
import kantan_agents
from kantan_agents.errors import ExtraMissingError

def packages():
    yield kantan_agents
    for found in pkgutil.walk_packages(kantan_agents.__path__, "kantan_agents."):
        if found.ispkg and not found.name.startswith("kantan_agents.cli"):
            with contextlib.suppress(ExtraMissingError):
                yield importlib.import_module(found.name)

def reason(use):
    try:
        use()
    except AttributeError as error:
        return str(error)

missing = {}
for package in packages():
    exported = getattr(package, "__all__", ())
    exec(f"from {package.__name__} import *", {})
    assert all(hasattr(package, name) for name in exported)
    pydoc.render_doc(package)
    for name, value in inspect.getmembers(package):
        if type(value).__name__ != "MissingName":
            continue
        assert not isinstance(1, value) and "extra is missing" in inspect.getdoc(value)
        assert typing.get_args(value | None)[0].__name__ == name
        assert not hasattr(value, "of_class") and "extra is missing" in reason(lambda: value.of_class)
        for use in (value, lambda: type("Mine", (value,), {})):
            try:
                use()
            except ExtraMissingError as error:
                missing.setdefault(error.extra, []).append(f"{package.__name__}.{name}")
print(json.dumps(missing))
"""

RETRIEVAL = """
from kantan_agents import Agent, ToolRetrieval
from kantan_agents.errors import ExtraMissingError

Agent("a", "Answer.", model="gpt-6.1-terra", tool_retrieval=ToolRetrieval(provider_search=True))
try:
    Agent("a", "Answer.", model="gpt-6.1-terra", tool_retrieval=ToolRetrieval())
except ExtraMissingError as error:
    print(error.extra)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plain")


def run(folder: Path, program: str) -> str:
    # A new interpreter: what it has imported is what is tested.
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED + program],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_agent_runs_with_rules_and_traces(folder: Path) -> None:
    run(folder, AGENT)


@pytest.fixture(scope="module")
def commands(folder: Path) -> tuple[dict[str, int], dict[str, Any]]:
    outcomes, needs = json.loads(run(folder, COMMANDS))
    return outcomes, needs


def test_the_demo_and_commands_work_and_every_command_has_its_help(commands: Any) -> None:
    outcomes, _ = commands
    assert {"chat", "demo", "eval", "traces list"} < set(outcomes)
    assert [name for name, code in outcomes.items() if code != 0] == []


def test_a_command_that_needs_an_extra_says_so_in_one_line(commands: Any) -> None:
    _, needs = commands
    for code, out, err in needs.values():
        assert (code, out, err.count("\n")) == (2, "", 1), err
    named = {given: err.rpartition("[")[2] for given, (_, _, err) in needs.items()}
    assert [name.rstrip('"]\n') for name in named.values()] == [
        "chat",
        "lab",
        "lab",
        "dbos",
        "postgres",
        "page",
        "page",
    ]


def test_every_name_is_there_and_those_of_an_extra_say_so_when_they_are_used(folder: Path) -> None:
    missing = {extra: Counter(names) for extra, names in json.loads(run(folder, NAMES)).items()}
    assert set(missing) == {"lab", "otel", "page"}
    lab = {name.removeprefix("kantan_agents.lab.") for name in missing["lab"]}
    assert {"kantan_agents.Rollout", "evaluate", "improve"} < lab
    assert lab.isdisjoint({"StatusJudge", "replay", "what_if"})
    assert {"kantan_agents.OtelExporter", "kantan_agents.traces.telemetry.OtelStats"} < set(missing["otel"])
    assert set(missing["page"]) == {"kantan_agents.page.traces_app"}
    assert {uses for names in missing.values() for uses in names.values()} == {2}


def test_tool_retrieval_needs_its_extra_unless_the_provider_searches(folder: Path) -> None:
    assert run(folder, RETRIEVAL) == "retrieval\n"
