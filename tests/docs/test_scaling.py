"""The program and the commands of docs/guides/deploying.md, run as a reader would, with real workers."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from kantan_agents.testing import OfflineServer, RecordedRequest, function_call
from tests.programs import Preloaded, Program

from .pages import ROOT, Page

PAGE = Page(ROOT / "docs" / "guides" / "deploying.md")
(PROGRAM,) = (block.code for block in PAGE.blocks("python") if "clerk = Agent" in block.code)
PATIENCE = 90.0


def _model(request: RecordedRequest) -> Any:
    last = request.input[-1]
    if last.get("type") == "function_call_output":
        return last["output"]
    number = re.sub(r"\D", "", last["content"])
    return [function_call("order_status", {"order_id": number}, call_id="c1")]


class Reader:
    """Runs the commands of the page in a folder with its programs."""

    def __init__(self, preloaded: Preloaded, folder: Path, environ: dict[str, str]) -> None:
        self.preloaded = preloaded
        self.folder = folder
        self.environ = environ
        self.workers: list[Program] = []
        (folder / "clerk.py").write_text(PROGRAM)

    def runs(self, command: str) -> str:
        """Run a command, and return what it prints; start one that ends with ``&``."""
        if command.endswith("&"):
            log = self.folder / f"worker-{len([*self.folder.glob('worker-*.log')])}.log"
            with log.open("wb") as output:
                worker = self.preloaded.popen(
                    self._arguments(command), cwd=self.folder, env=self.environ, stdout=output, stderr=output
                )
            self.workers.append(worker)
            return ""
        finished = self._finished(command)
        if finished.returncode != 0:
            self._fail(finished)
        return finished.stdout

    def shows_in_the_end(self, command: str, text: str, count: int) -> None:
        """Run a command again until it prints a text so often."""
        deadline = time.monotonic() + PATIENCE
        while (finished := self._finished(command)).stdout.count(text) != count:
            if time.monotonic() > deadline:
                self._fail(finished)

    def _arguments(self, command: str) -> list[str]:
        text = command.replace("$DATABASE", self.environ["DATABASE"])
        program, *arguments = [one for one in shlex.split(text) if one != "&"]
        first: dict[str, list[str]] = {"python": [], "kantan-agents": ["-m", "kantan_agents"]}
        return [*first[program], *arguments]

    def _finished(self, command: str) -> subprocess.CompletedProcess[str]:
        return self.preloaded.run(
            self._arguments(command), cwd=self.folder, env=self.environ, timeout=PATIENCE
        )

    def _fail(self, finished: subprocess.CompletedProcess[str]) -> None:
        logs = [f"{path.name}:\n{path.read_text()}" for path in sorted(self.folder.glob("*.log"))]
        pytest.fail("\n".join((*finished.args, finished.stdout, finished.stderr, *logs)))

    def stop(self) -> None:
        """End the workers as a deploy does."""
        for worker in self.workers:
            worker.terminate()
        for worker in self.workers:
            assert worker.wait(PATIENCE) == 0
        self.workers.clear()


def test_the_commands_of_the_page_do_what_it_says(
    tmp_path: Path, postgres_url: str, preloaded: Preloaded
) -> None:
    one, three, places = (block for block in PAGE.blocks("bash") if "kantan-agents" in block.code)
    with OfflineServer(_model) as server:
        environ = {**os.environ, **server.environment()}
        reader = Reader(preloaded, tmp_path, {**environ, "DATABASE": "sqlite:///runs.sqlite3"})
        try:
            printed = [reader.runs(command) for command in one.code.splitlines()]
            assert printed[-1].splitlines() == [f"Order {number} is on its way." for number in range(2)]
            reader.stop()
            reader.environ["DATABASE"] = postgres_url
            printed = [reader.runs(command) for command in three.code.splitlines()]
            assert printed[-1].splitlines() == [f"Order {number} is on its way." for number in range(20)]
            list_runs, list_traces = places.code.splitlines()
            assert reader.runs(list_runs).count("finished") == 20
            # While the workers go on, as on the page. A run ends before its traces are written, and a worker
            # that ends waits five seconds for the database, which may be too short on a busy machine.
            reader.shows_in_the_end(list_traces, "Where is order", 20)
            reader.stop()
        finally:
            for worker in reader.workers:
                worker.kill()
                worker.wait()
