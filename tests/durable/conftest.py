"""Scenes: a program that is killed in a durable run, and another one that goes on with it."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kantan_agents import DurableRuns
from kantan_agents.testing import OfflineServer
from tests.programs import Preloaded, Program

_PRELUDE = """
import asyncio, json, os, signal, sys
from kantan_agents import *
from kantan_agents.middleware import *
from kantan_agents.durable import *

DB, TRACES, LOG = os.environ["DB"], os.environ["TRACES"], os.environ["LOG"]
FIRST = os.environ["FIRST"] == "yes"
DurableRuns.__init__.__kwdefaults__["engine"] = os.environ["ENGINE"]

def effect(line):
    descriptor = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{line}\\n".encode())
    os.close(descriptor)

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def die_first():
    if FIRST:
        die()

OPTIONS, INPUT, CONTEXT, RUN = {}, "Go.", {}, {}
"""

_MAIN = """
async def go_on(runs):
    for run in await runs.list_runs(limit=1000):
        shown = {"run_id": run.run_id}
        try:
            outcome = await runs.result(run.run_id, timeout=120)
            shown |= {"output": outcome.output, "context": outcome.context, "waiting": outcome.waiting}
        except Exception as error:
            shown |= {"error": str(error)}
        shown |= {"status": (await runs.get(run.run_id)).status}
        print(json.dumps(shown))

async def main():
    record_traces(TRACES)
    async with DurableRuns(DB, agents=[agent], **{"look_interval": 0.05, **OPTIONS}) as runs:
        if FIRST:
            await first(runs)
        else:
            await go_on(runs)

if "first" not in globals():
    async def first(runs):
        context = await agent.run_async(INPUT, dict(CONTEXT), **RUN)
        print(json.dumps({"output": str(context["result"].final_output)}))

asyncio.run(main())
"""


class Scene:
    """Two processes, one after the other, with one database.

    Attributes:
        folder: Where the files are.
        database: URL of the database of durable runs.
        server: The scripted model of the running ``with`` block.
    """

    def __init__(self, preloaded: Preloaded, folder: Path, database: str | None = None) -> None:
        self._preloaded = preloaded
        self.folder = folder
        self.database = database or f"sqlite:///{folder / 'runs.sqlite3'}"
        self.traces = folder / "traces.sqlite3"
        self._log = folder / "log"

    def run(
        self,
        code: str,
        server: OfflineServer,
        *,
        first: bool,
        dies: bool | None = None,
        ends_by: Sequence[int] = (),
    ) -> list[dict[str, Any]]:
        """Run the code as a program, and return what it has printed, a line each.

        Args:
            code: It defines ``agent``, and ``first(runs)`` if the first program does more than a run.
            server: The scripted model.
            first: Whether it is the first of the two programs, which is killed.
            dies: Whether it kills itself; None means that the first one does.
            ends_by: Its possible exit statuses, if it ends otherwise.
        """
        program = self.begin(code, server, first=first)
        stdout, stderr = program.communicate(120)
        expected = -9 if (first if dies is None else dies) else 0
        assert program.returncode in (ends_by or (expected,)), (program.returncode, stdout, stderr)
        return [json.loads(line) for line in stdout.splitlines() if line.startswith("{")]

    def begin(self, code: str, server: OfflineServer, *, first: bool) -> Program:
        """Begin to run the code as a program; otherwise as ``run``."""
        environ = {
            **os.environ,
            **server.environment(),
            "DB": self.database,
            "ENGINE": default_engine(),
            "TRACES": str(self.traces),
            "LOG": str(self._log),
            "FIRST": "yes" if first else "no",
        }
        source = _PRELUDE + textwrap.dedent(code) + _MAIN
        return self._preloaded.popen(["-c", source], env=environ, encoding="utf-8")

    def killed(self, code: str, server: OfflineServer) -> dict[str, Any]:
        """Run the code until it kills itself, then again; return how its only run has ended."""
        self.run(code, server, first=True)
        ended = self.run(code, server, first=False)
        assert len(ended) == 1, ended
        return ended[0]

    @property
    def effects(self) -> list[str]:
        """The lines that the programs have noted."""
        return self._log.read_text().splitlines() if self._log.exists() else []


_DEFAULTS: Any = DurableRuns.__init__.__kwdefaults__


def default_engine() -> str:
    """Return the engine of a test that names none; other programs are given it too."""
    return str(_DEFAULTS["engine"])


def use_engine(monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
    """Let the test use an engine where it names none."""
    monkeypatch.setitem(_DEFAULTS, "engine", engine)


@pytest.fixture(params=["dbos", "temporal"])
def each_engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each engine, for tests that name none."""
    if request.param == "temporal":
        use_engine(monkeypatch, request.getfixturevalue("temporal"))
    return str(request.param)


@pytest.fixture
def scene(preloaded: Preloaded, tmp_path: Path) -> Scene:
    """Two processes with one SQLite file."""
    return Scene(preloaded, tmp_path)


@pytest.fixture
def shared_scene(preloaded: Preloaded, tmp_path: Path, postgres_url: str) -> Scene:
    """Two processes with one Postgres database."""
    return Scene(preloaded, tmp_path, postgres_url)
