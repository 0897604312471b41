"""The program on a real model: ``run``, ``chat``, ``demo``, and the traces of what they have recorded."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import httpx
import pytest

from kantan_agents import TraceStore
from kantan_agents.testing import OfflineServer
from kantan_agents.traces.store import TraceSummary
from tests.cli.chat.terminal import SCRIPT
from tests.programs import Preloaded
from tests.real_model.language_model import NAME, PATIENCE, ModelServer

MODEL = f"compat/{NAME}"
ASSISTANT = f'Agent("assistant", "You are a helpful assistant.", model="{MODEL}")'
QUESTION = "Name a color."
NOBODY = "http://127.0.0.1:9/v1"


class Program:
    """The program in an empty folder, without files and settings of the user.

    Attributes:
        folder: The folder.
    """

    def __init__(self, preloaded: Preloaded, folder: Path, url: str) -> None:
        self.folder = folder
        self._preloaded = preloaded
        self._environment = {
            **os.environ,
            "COLUMNS": "100",
            "HOME": str(folder),
            "KANTAN_AGENTS_CONVERSATIONS": str(folder / "conversations.sqlite3"),
            "KANTAN_AGENTS_DB": str(folder / "traces.sqlite3"),
            "KANTAN_LLM_BASE_URL": url,
            "NO_PROXY": "127.0.0.1",
        }

    def __call__(self, *arguments: str, url: str | None = None) -> str:
        """Run a command, and return what it has printed."""
        return self._run("-m", "kantan_agents", *arguments, url=url)

    def chat(self, questions: str, *arguments: str) -> str:
        """Ask the lines of a text in a chat, and return the answers."""
        file = self.folder / "questions"
        file.write_text(questions)
        return self._run(str(SCRIPT), f"stdin:{file}", "chat", "--model", MODEL, *arguments)

    def _run(self, *command: str, url: str | None = None) -> str:
        environment = {**self._environment, **({} if url is None else {"KANTAN_LLM_BASE_URL": url})}
        ended = self._preloaded.run(command, env=environment, cwd=self.folder, timeout=PATIENCE)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    @property
    def recorded(self) -> list[TraceSummary]:
        """What it has recorded, the first run first."""
        return TraceStore(self.folder / "traces.sqlite3").traces()[::-1]

    def replay(self, agent: str, *traces: TraceSummary) -> None:
        """Save runs, and replay them strictly with an agent, an expression, and with no model."""
        imports = "from kantan_agents import Agent\nfrom kantan_agents.cli.demo.agents import *\n"
        (self.folder / "made.py").write_text(f"{imports}\nagent = {agent}\n")
        recordings = [f"{trace.trace_id}.json" for trace in traces]
        for trace, recording in zip(traces, recordings, strict=True):
            self("traces", "save", trace.trace_id, "--output", recording)
        self("replay", "recordings", *recordings, "--agent", "made:agent", url=NOBODY)

    @contextmanager
    def page(self) -> Iterator[httpx.Client]:
        """Yield a client of the page that ``traces open`` serves."""
        command = ["-m", "kantan_agents", "traces", "open", "--no-browser", "LAST"]
        process = self._preloaded.popen(command, env=self._environment, cwd=self.folder)
        try:
            assert process.stdout is not None
            address = process.stdout.readline().decode().strip()
            with httpx.Client(base_url=address.partition("?")[0], trust_env=False) as client:
                assert client.get(address).status_code == 303
                yield client
        finally:
            process.terminate()
            process.communicate()


@pytest.fixture
def program(preloaded: Preloaded, server: ModelServer, tmp_path: Path) -> Program:
    return Program(preloaded, tmp_path, server.url)


def test_an_answer_its_trace_its_page_and_its_replay(program: Program) -> None:
    answer = program("run", QUESTION, "--model", MODEL).strip()
    (trace,) = program.recorded
    assert (trace.input, str(trace.output).strip(), trace.status) == (QUESTION, answer, "ok")
    assert answer
    shown = program("traces", "show", "LAST")
    assert QUESTION in shown
    assert NAME in shown
    shows_as_a_text(shown, answer)
    with program.page() as page:
        assert "kantan-token" in page.get("/").text
        (row,) = page.get("/api/runs").json()["runs"]
        assert row["id"] == trace.trace_id
        run = page.get(f"/api/run/{trace.trace_id}").json()
        assert (run["output_tokens"], run["output"]["text"].strip()) == (trace.output_tokens, answer)
    program.replay(ASSISTANT, trace)


def shows_as_a_text(shown: str, answer: str) -> None:
    """Check that the span of a model call has its answer, and the run too; what follows may be cut."""
    words = " ".join(answer.split()[:3])
    assert " ".join(shown.split()).count(words) >= 2
    assert "calls None" not in shown


def test_a_chat_that_is_continued(program: Program) -> None:
    program.chat(f"{QUESTION}\n{QUESTION}\n")
    program.chat(f"{QUESTION}\n", "--resume", "last")
    recorded = program.recorded
    assert [trace.status for trace in recorded] == ["ok"] * 3
    # Each question is asked with all that was said before.
    for before, after in pairwise(recorded):
        assert after.input_tokens > before.input_tokens + before.output_tokens
    shows_as_a_text(program("traces", "show", "LAST"), str(recorded[-1].output))
    program.replay(ASSISTANT, *recorded)


def test_the_demo(program: Program, proxy: OfflineServer) -> None:
    shown = program("demo", "--model", MODEL, "--db", "traces.sqlite3", url=proxy.base_url)
    support, judge = program.recorded
    assert (support.status, judge.status) == ("ok", "ok")
    assert support.trace_id in shown
    program.replay(f'support_agent("{MODEL}", [])', support)
    program.replay(f'judge_agent("{MODEL}", judged="")', judge)
