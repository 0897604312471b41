"""A check in another process ends with the task that waits for it, and decides as a check in this process."""

from __future__ import annotations

import asyncio
import json
import os
import random
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import agents
import anyio
import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import Agent
from kantan_agents.errors import DeadlineExceededError, ToolInputError
from kantan_agents.middleware import Deadline
from kantan_agents.subagent_files import name_key
from kantan_agents.testing import ScriptedModel, function_call
from kantan_agents.testing.strategies import tool_calls, tool_rules
from kantan_agents.tool_rules import Decision, Origin, ToolFacts, ToolRules, decide_call, worker
from kantan_agents.tool_rules.worker import decide, decision_of, task_of, worker_command
from kantan_agents.tools.guards import worker_process
from kantan_agents.tools.guards.check import check_call
from kantan_agents.tools.guards.worker_process import run_worker
from kantan_agents.tools.server_names import hosted_mcp_facts

ENDLESS = "import time; time.sleep(3600)"
ENTRIES = ("Task(code-reviewer)", "Task(Code Reviewer)", "Task(tester)", "Task(code:*)", "Task", "T*")
NAMES = ("code-reviewer", "Code Reviewer", "codeReviewer", "tester", "TESTER", "code reviewer; tester", "x")
TASK_SCHEMA = {
    "type": "object",
    "properties": {"subagent_type": {"type": "string"}, "limit": {"type": "integer"}},
}


class Started:
    """The processes that were started, and an event for the first one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.processes: list[Any] = []
        self.first = threading.Event()
        self.has_begun: anyio.Event | None = None
        open_process = anyio.open_process

        async def opened(*args: Any, **kwargs: Any) -> Any:
            process = await open_process(*args, **kwargs)
            self.processes.append(process)
            self.first.set()
            if self.has_begun is not None:
                self.has_begun.set()
            return process

        monkeypatch.setattr(anyio, "open_process", opened)

    def codes(self) -> list[int | None]:
        return [process.returncode for process in self.processes]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    return Started(monkeypatch)


def is_alive(pid: int) -> bool:
    """Return whether a process exists, also as a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_cancelled_check_kills_its_process_at_once(started: Started) -> None:
    started.has_begun = anyio.Event()
    task = asyncio.create_task(run_worker(ENDLESS, b""))
    await started.has_begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert started.codes() == [-signal.SIGKILL]
    assert not is_alive(started.processes[0].pid)
    assert not worker_process._running


async def test_a_check_that_is_cancelled_while_its_process_starts_leaves_none(started: Started) -> None:
    for _ in range(5):
        task = asyncio.create_task(run_worker(ENDLESS, b""))
        await anyio.lowlevel.checkpoint()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert not any(is_alive(process.pid) for process in started.processes)
    assert not worker_process._running


async def test_a_check_that_takes_too_long_is_killed(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_process, "LIFETIME_SECONDS", 0.5)
    with pytest.raises(TimeoutError):
        await run_worker(ENDLESS, b"")
    assert started.codes() == [-signal.SIGKILL]


async def test_a_program_that_fails_is_an_error() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        await run_worker("sys.exit(3)", b"x" * 1_000_000)


@pytest.mark.slow  # starts an interpreter
def test_no_file_that_a_tool_may_write_takes_the_place_of_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    working, lib = tmp_path / "working", tmp_path / "lib"
    for folder in (working, lib):
        folder.mkdir()
        for name in ("attr", "json", "jsonschema_rs", "kantan_agents", "sitecustomize"):
            (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'a').write('{name} ')")
    monkeypatch.chdir(working)
    monkeypatch.setattr(sys, "path", ["", str(working), str(lib), *sys.path])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", str(lib)]))
    task = json.dumps(task_of(ToolRules.parse({}), ToolFacts(("x",)), {}))
    done = subprocess.run(worker_command(), input=task, stdout=subprocess.PIPE, text=True, check=True)
    assert json.loads(done.stdout)["allowed"]
    assert not (tmp_path / "executed").exists()


def test_where_all_is_in_the_working_directory_it_is_found_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    library = Path(worker.__file__).parents[2]
    monkeypatch.chdir(library)
    monkeypatch.setattr(sys, "path", ["", *(one for one in sys.path if one != str(library))])
    assert str(library) in worker._places()
    assert "" not in worker._places()
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    if os.name == "posix":
        gone.rmdir()
        assert str(library) in worker._places()


async def test_a_deadline_ends_a_run_during_a_check_in_another_process(started: Started) -> None:
    @agents.function_tool
    def find(text: str) -> str:
        return text

    # Matching takes about a minute.
    text = "".join(random.Random(1).choices("ab", k=2_000_000))
    rules = {"params": {"find": {"text": {"pattern": "[ab]*a[ab]{200}c"}}}}
    model = ScriptedModel([[function_call("find", {"text": text}, call_id="c1")]])
    agent = Agent("a", "x", tools=[find], model=model, middleware=[Deadline(1.5)])
    with pytest.raises(DeadlineExceededError):
        await agent.run_async("hi", {"tool_rules": rules})
    assert started.codes() == [-signal.SIGKILL]
    assert not is_alive(started.processes[0].pid)


async def test_checks_work_after_a_cancelled_one(started: Started) -> None:
    for _ in range(3):  # more than may run at the same time
        started.has_begun = anyio.Event()
        task = asyncio.create_task(run_worker(ENDLESS, b""))
        await started.has_begun.wait()
        task.cancel()
        await asyncio.wait([task])
    assert await run_worker("print(sys.stdin.read(), end='')", b"task") == b"task"


def test_checks_work_in_several_threads_with_loops_of_their_own() -> None:
    found: list[bytes] = []

    def check(number: int) -> None:
        text = str(number).encode()
        found.append(asyncio.run(run_worker("print(sys.stdin.read(), end='')", text)))

    threads = [threading.Thread(target=check, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [b"0", b"1", b"2", b"3"]


PARENT = """
import asyncio, os, signal, sys, threading
import anyio
from kantan_agents.tools.guards.worker_process import run_worker

ended = sys.argv[1]
opened = anyio.open_process
ready = threading.Event()

async def opening(*args, **kwargs):
    process = await opened(*args, **kwargs)
    print(process.pid, flush=True)
    ready.set()
    return process

anyio.open_process = opening
# The worker's own program: it waits for a task that is never complete.
program = "from kantan_agents.tool_rules.worker import _end_with; _end_with(parent); "
program += "print('ready', flush=True); import time; time.sleep(3600)"

async def check():
    await run_worker(program, b"")

threading.Thread(target=lambda: asyncio.run(check()), daemon=True).start()
ready.wait()
sys.stdin.readline()
if ended == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems end the process by an alarm")
@pytest.mark.parametrize("way", ["exits", "killed"])
def test_a_process_does_not_outlive_its_parent(way: str) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, way], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdin is not None
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    descriptor = os.pidfd_open(worker)
    parent.communicate("\n")
    try:
        # Readable as soon as the process has ended, also after its parent.
        assert select.select([descriptor], [], [], 10)[0]
    finally:
        os.close(descriptor)


# Decisions


def in_this_process(rules: ToolRules, tool: ToolFacts, arguments: dict[str, Any]) -> Decision:
    try:
        return decide_call(rules, tool, arguments)
    except ToolInputError as error:
        return Decision(allowed=False, key="params", entry=tool.name, error=error)


def in_another_process(rules: ToolRules, tool: ToolFacts, arguments: Any) -> Decision:
    """Decide as the worker does, with everything that passes between the processes as JSON."""
    task = json.loads(json.dumps(task_of(rules, tool, arguments)))
    return decision_of(json.loads(json.dumps(decide(task))), tool)


def as_facts(decision: Decision) -> tuple[Any, ...]:
    error = decision.error
    data = {name: repr(value) for name, value in error.data.items()} if error is not None else None
    return decision.allowed, decision.key, decision.entry, type(error), str(error), data


folds: st.SearchStrategy[Callable[[str], str] | None] = st.sampled_from([None, name_key, str.casefold])
entries = st.none() | st.just("*") | st.lists(st.sampled_from(ENTRIES), max_size=3)
agent_rules = st.fixed_dictionaries({"allow": entries, "deny": entries})
agent_names = st.sampled_from(NAMES)
agent_calls = st.fixed_dictionaries(
    {},
    optional={
        "subagent_type": agent_names | st.lists(agent_names, max_size=2) | st.none(),
        "limit": st.integers(),
    },
)


@given(
    agent_rules,
    agent_calls,
    folds,
    st.sampled_from([("Task",), ("task",), ("run", "Task"), ("Task", "T2"), ("TA_SK",)]),
    st.booleans(),
)
def test_another_process_decides_alike_about_equivalent_names(
    rules: Any, arguments: dict[str, Any], fold: Any, names: Any, folds_denials: bool
) -> None:
    parsed = ToolRules.parse(rules, folds_denials=folds_denials)
    tool = ToolFacts(names, "subagent_type", TASK_SCHEMA, fold=fold)
    here = in_this_process(parsed, tool, arguments)
    assert as_facts(in_another_process(parsed, tool, arguments)) == as_facts(here)


SERVER_ENTRIES = (
    "mcp__github__*",
    "mcp__evil__*",
    "mcp__*",
    "steal",
    "mcp__github__steal",
    "steal(a:*)",
    "fs.*",
)
server_entries = st.none() | st.lists(st.sampled_from(SERVER_ENTRIES), max_size=3)


@given(
    st.fixed_dictionaries({"allow": server_entries, "deny": server_entries}),
    st.sampled_from(["evil", "github", "git hub"]),
    st.sampled_from(["steal", "mcp__github__steal", "fs.steal"]),
    st.sampled_from(["a b", "b"]),
)
def test_another_process_decides_alike_about_the_tools_of_servers(
    rules: Any, server: str, called: str, command: str
) -> None:
    parsed = ToolRules.parse(rules)
    tool = attrs.evolve(hosted_mcp_facts(server, called), parameter="command")
    here = in_this_process(parsed, tool, {"command": command})
    assert as_facts(in_another_process(parsed, tool, {"command": command})) == as_facts(here)


PROPERTY = st.sampled_from(
    [{}, {"type": "integer"}, {"type": ["string", "null"]}, {"default": 5}, {"enum": [1, "a"]}]
)


@given(st.data(), tool_rules(), st.dictionaries(st.sampled_from(["query", "limit", "command"]), PROPERTY))
def test_another_process_decides_alike_about_all_rules_and_calls(
    data: st.DataObject, rules: Any, properties: Any
) -> None:
    parsed = ToolRules.parse(rules, folds_denials=data.draw(st.booleans()))
    name, arguments = data.draw(tool_calls(parsed))
    parameter = data.draw(st.sampled_from([None, "command", "query"]))
    others = data.draw(
        st.lists(st.sampled_from(["search", "Bash", "fs_read", "fs.read", "other"]), max_size=2)
    )
    schema = {"type": "object", "properties": properties}
    origin = data.draw(st.none() | st.builds(Origin, st.sampled_from([None, name])))
    tool = ToolFacts((name, *others), parameter, schema, fold=data.draw(folds), origin=origin)
    here = in_this_process(parsed, tool, arguments)
    assert as_facts(in_another_process(parsed, tool, arguments)) == as_facts(here)
    if tool.fold is None:
        assert as_facts(in_another_process(parsed, tool, json.dumps(arguments))) == as_facts(here)


@pytest.mark.parametrize("name", ["Code Reviewer", "codeReviewer"])
async def test_an_equivalent_name_is_denied_in_another_process_too(started: Started, name: str) -> None:
    rules = ToolRules.parse({"deny": ["Task(code-reviewer)"]})
    tool = ToolFacts(("Task",), "subagent_type", TASK_SCHEMA, fold=name_key)
    prompt = ",".join("x" * 5 for _ in range(10_000))  # many commas: parsed elsewhere
    decision = await check_call(rules, tool, json.dumps({"subagent_type": name, "prompt": prompt}))
    assert started.processes
    assert decision.rule == "deny: Task(code-reviewer)"


@pytest.mark.parametrize("origin", [None, Origin("bash")])
async def test_a_name_that_is_denied_in_any_spelling_is_denied_in_another_process_too(
    started: Started, origin: Origin | None
) -> None:
    rules = ToolRules.parse({"deny": ["Bash(rm:*)"]}, folds_denials=True)
    tool = ToolFacts(("bash",), "command", origin=origin)
    decision = await check_call(rules, tool, json.dumps({"command": f"echo {'x ' * 20_000}; rm -rf /"}))
    assert started.processes
    assert decision.rule == "deny: Bash(rm:*)"
