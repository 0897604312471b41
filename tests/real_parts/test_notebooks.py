"""Notebooks: sync and async runs of one agent in turns, interrupted cells, and the end of the kernel."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.manager import start_new_kernel
from nbclient import NotebookClient

from kantan_agents import TraceStore
from kantan_agents.testing import OfflineServer

# The clients of kernels leave sockets and event loops of their own to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

SECONDS = 60

# The client is one of the application's own. The recorder writes only when it must.
FIRST = """
from agents import OpenAIChatCompletionsModel
from openai import AsyncOpenAI
from kantan_agents import Agent, connection_stats, record_traces

recorder = record_traces("traces.sqlite3", flush_interval=3600.0)
client = AsyncOpenAI()
agent = Agent("a", "Answer.", model=OpenAIChatCompletionsModel("m", client))
named = Agent("named", "Answer.", model="gpt-5")
"""
SYNC = "agent.run('Hello')['result'].final_output"
ASYNC = "(await agent.run_async('Hello'))['result'].final_output"
STREAM = """
async with agent.stream("Hello") as run:
    text = "".join([piece async for piece in run.text_deltas()])
text
"""
NAMED = "[named.run('Hello')['result'].final_output, (await named.run_async('Hello'))['result'].final_output]"


class Answers:
    """What the server answers; it waits after the question ``slow``."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.released = threading.Event()

    def __call__(self, request: Any) -> str:
        if "slow" in str(request.input):
            self.asked.set()
            self.released.wait(SECONDS)
        return "Hello."


class Notebook:
    """A kernel, to which cells are sent one by one."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._kernel, self._client = start_new_kernel(cwd=str(folder), env={**os.environ, **environment})
        self._kernel.shutdown_wait_time = SECONDS  # after five, a kernel on a busy machine would be killed

    def run(self, source: str) -> Any:
        """Run a cell and return the value of its last line; raise the error of the cell."""
        outputs: list[Any] = []
        reply = self._client.execute_interactive(
            source,
            timeout=SECONDS,
            output_hook=lambda message: outputs.append(message["content"]),
            allow_stdin=False,
        )
        if reply["content"]["status"] != "ok":
            raise CellError(reply["content"].get("ename", reply["content"]["status"]))
        written = "".join(str(output["text"]) for output in outputs if "text" in output)
        assert "Error" not in written, written
        return next((eval(output["data"]["text/plain"]) for output in outputs if "data" in output), None)

    def interrupt(self) -> None:
        """Interrupt the cell, as the button of a notebook does."""
        self._kernel.interrupt_kernel()

    def restart(self) -> None:
        """Restart the kernel."""
        self._kernel.restart_kernel()
        self._client.wait_for_ready(timeout=SECONDS)

    def close(self) -> None:
        """End the kernel, if it has not ended."""
        self._client.stop_channels()
        if self._kernel.has_kernel:
            self._kernel.shutdown_kernel()


class CellError(Exception):
    """A cell has failed; the message is the class of its error."""


@pytest.fixture
def answers() -> Iterator[Answers]:
    answers = Answers()
    yield answers
    answers.released.set()


@pytest.fixture
def server(answers: Answers) -> Iterator[OfflineServer]:
    with OfflineServer(answers, keep_alive=True) as server:
        yield server


@pytest.fixture
def notebook(tmp_path: Path, server: OfflineServer) -> Iterator[Notebook]:
    notebook = Notebook(tmp_path, server.environment())
    yield notebook
    notebook.close()


def test_a_notebook_of_sync_and_async_runs_sends_each_request_once(
    tmp_path: Path, server: OfflineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    cells = [FIRST, SYNC, ASYNC, STREAM, SYNC, ASYNC, NAMED, STREAM, SYNC]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell.strip()) for cell in cells])
    NotebookClient(book, timeout=SECONDS, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output["data"]["text/plain"] for cell in book.cells[1:] for output in cell.outputs]
    assert shown == ["'Hello.'"] * 5 + ["['Hello.', 'Hello.']"] + ["'Hello.'"] * 2
    retried = [request.headers["x-stainless-retry-count"] for request in server.requests]
    assert retried == ["0"] * 9
    assert len(TraceStore(tmp_path / "traces.sqlite3").traces(limit=None)) == 9


# ipykernel itself does not interrupt a cell that awaits, whatever it awaits.
def test_after_an_interrupted_cell_the_agent_and_its_client_work(
    notebook: Notebook, server: OfflineServer, answers: Answers
) -> None:
    notebook.run(FIRST)
    assert notebook.run(SYNC) == notebook.run(ASYNC) == "Hello."

    def interrupt() -> None:
        answers.asked.wait(SECONDS)
        notebook.interrupt()

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    with pytest.raises(CellError, match="KeyboardInterrupt"):
        notebook.run("agent.run('slow')")
    interrupting.join()
    answers.released.set()
    assert notebook.run(SYNC) == notebook.run(ASYNC) == notebook.run(STREAM) == "Hello."
    assert len(server.requests) == 6
    active = "[stats.active + stats.pending_requests for stats in connection_stats()]"
    assert notebook.run(active) == [0]


@pytest.mark.parametrize("end", [Notebook.restart, Notebook.close])
def test_the_end_of_a_kernel_loses_no_trace(
    notebook: Notebook, tmp_path: Path, end: Callable[[Notebook], None]
) -> None:
    notebook.run(FIRST)
    notebook.run(SYNC)
    notebook.run(ASYNC)
    end(notebook)
    assert len(TraceStore(tmp_path / "traces.sqlite3").traces(limit=None)) == 2


def test_a_restarted_kernel_runs_the_same_cells(notebook: Notebook, server: OfflineServer) -> None:
    for _ in range(2):
        notebook.run(FIRST)
        assert notebook.run(SYNC) == notebook.run(ASYNC) == "Hello."
        notebook.restart()
    assert len(server.requests) == 4
