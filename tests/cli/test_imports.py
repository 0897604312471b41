"""What commands import: none but those that need it imports the SDK, openai, pydantic or statistics."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import typer

from benchmarks.startup_project import CONVERT, COUNT, ENDLESS, NEED_THE_SDK, commands
from kantan_agents.cli.app import app
from tests.programs import Preloaded

SDK = ("agents", "openai", "mcp", "httpx")
ALL = (
    *SDK,
    "anyio.from_thread",
    "numpy",
    "scipy",
    "structlog",
    "dbos",
    "sqlalchemy",
    "temporalio",
    "prompt_toolkit",
)

# A new interpreter runs the commands, because this one has imported everything. One for all of them: what is
# imported stays, and starting one takes as long as most commands.
PROGRAM = """
import json, signal, sys
from kantan_agents.cli.app import invoke

seen, quiet = 0, 0

def interrupt(*_):
    # An endless command ends when it has imported nothing for a second.
    global seen, quiet
    seen, quiet = len(sys.modules), quiet + 1 if seen == len(sys.modules) else 0
    if quiet == 5:
        quiet = 0
        raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
commands, endless = json.loads(sys.argv[1])
codes = []
for command in commands:
    every = 0.2 if " ".join(command[:2]) in endless else 0
    signal.setitimer(signal.ITIMER_REAL, every, every)
    codes.append(invoke(command))
    signal.setitimer(signal.ITIMER_REAL, 0)
modules = {name.partition(".")[0] for name in sys.modules}
if "anyio._lazyimport" in sys.modules:  # older versions of anyio import all at once
    modules |= {"anyio.from_thread"} & sys.modules.keys()
modules |= {"numpy.ma"} & sys.modules.keys()
if type(sys.modules.get("kantan_llm")).__name__ == "module":
    modules.add("kantan_llm, with its clients")
sys.stderr.write("\\n" + json.dumps([codes, sorted(modules)]))
"""


def names(group: Any, words: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the commands that do something, by their words."""
    if not hasattr(group, "commands"):
        yield " ".join(words)
        return
    for name in group.commands:
        yield from names(group.commands[name], (*words, name))


@pytest.fixture(scope="module")
def project(preloaded: Preloaded, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with agents, rules and a trace database."""
    folder = tmp_path_factory.mktemp("project")
    made = preloaded.run(["-m", "benchmarks.startup_project", folder, "3"])
    assert made.returncode == 0, made.stderr
    return folder


def executed(folder: Path, lines: Sequence[Sequence[str]]) -> tuple[list[int], set[str]]:
    """Execute commands in a new process; return their exit codes, and the packages that are imported then."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KANTAN_AGENTS")}
    home = {"HOME": str(folder / "home"), "KANTAN_AGENTS_CONFIG_DIR": str(folder / "config")}
    finished = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps([lines, sorted(ENDLESS)])],
        cwd=folder,
        env={**environment, **home},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    codes, modules = json.loads(finished.stderr.splitlines()[-1])
    return codes, set(modules)


def test_each_command_either_needs_no_sdk_or_says_why(project: Path) -> None:
    light = commands(project).keys()
    assert light | NEED_THE_SDK.keys() == set(names(typer.main.get_command(app)))
    assert not light & NEED_THE_SDK.keys()
    assert light >= COUNT | CONVERT | ENDLESS


@pytest.mark.parametrize(
    ("kinds", "forbidden"),
    [
        ((), (*ALL, "pydantic")),
        ((CONVERT,), ALL),
        ((COUNT,), (*SDK, "pydantic", "scipy", "numpy.ma")),
    ],
    ids=["reading", "converting", "counting"],
)
def test_reading_imports_neither_the_sdk_nor_openai(
    project: Path, tmp_path: Path, kinds: Sequence[set[str]], forbidden: Sequence[str]
) -> None:
    folder = tmp_path / "project"
    shutil.copytree(project, folder)
    lines = [
        [*words.split(), *arguments]
        for words, arguments in commands(folder).items()
        if [kind for kind in (COUNT, CONVERT) if words in kind] == list(kinds)
    ]
    codes, modules = executed(folder, lines)
    expected = {"tools explain": 1, "traces diff": 1, "traces tail": 130, "traces open": 130}
    assert {" ".join(line[:2]): code for line, code in zip(lines, codes, strict=True) if code} == {
        words: code for words, code in expected.items() if words in {" ".join(line[:2]) for line in lines}
    }
    unwanted = modules & {*forbidden, "kantan_llm, with its clients"}
    if unwanted:  # which command is it?
        each = {" ".join(line): executed(folder, [line])[1] & unwanted for line in lines}
        assert {line: found for line, found in each.items() if found} == {}
    assert unwanted == set()


def test_stored_results_are_compared_without_what_runs_agents(project: Path) -> None:
    reading = ("eval compare", "eval show")
    codes, modules = executed(project, [[*words.split(), *commands(project)[words]] for words in reading])
    assert codes == [0, 0]
    assert not modules & {"asyncio", "ssl"}
