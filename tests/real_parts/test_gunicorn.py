"""gunicorn with uvicorn workers: every answered request is in the trace database, however the server ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from kantan_agents import TraceStore
from kantan_agents.testing import OfflineServer
from tests.ports import reserved_port

WORKERS = 2
QUESTIONS = 12
SECONDS = 60.0

# The recorder writes only when it must: without a flush, every trace would be lost.
SERVICE = """
import os
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from kantan_agents import Agent, record_traces


def record():
    record_traces(os.environ["DATABASE"], flush_interval=3600.0)


if os.environ["RECORDED"] == "at import":
    record()
agent = Agent("support", "Answer.", model="gpt-5")


async def on_the_loop(request):
    await agent.run_async("Hello")
    return PlainTextResponse("answered")


def in_a_thread(request):
    agent.run("Hello")
    return PlainTextResponse("answered")


async def health(request):
    return PlainTextResponse("healthy")


@asynccontextmanager
async def lifespan(app):
    if os.environ["RECORDED"] == "in the lifespan":
        record()
    yield


routes = [Route("/loop", on_the_loop), Route("/thread", in_a_thread), Route("/health", health)]
app = Starlette(routes=routes, lifespan=lifespan)
"""


class Server:
    """gunicorn in a session of its own, so that a signal can be sent to all of its processes."""

    def __init__(self, folder: Path, base_url: str) -> None:
        self.database = folder / "traces.sqlite3"
        self._folder = folder
        self._base_url = base_url
        self._program: subprocess.Popen[bytes] | None = None
        (folder / "service.py").write_text(SERVICE)

    def start(self, *options: str, recorded: str = "at import") -> None:
        """Start it with further options, and wait until it answers."""
        self._address = f"127.0.0.1:{reserved_port()}"
        command = ["gunicorn", "service:app", "--worker-class", "uvicorn_worker.UvicornWorker"]
        more = ["--workers", str(WORKERS), "--bind", self._address]
        environment = {
            **os.environ,
            "DATABASE": str(self.database),
            "RECORDED": recorded,
            "OPENAI_API_KEY": "offline",
            "OPENAI_BASE_URL": self._base_url,
        }
        with (self._folder / "log").open("ab") as log:
            self._program = subprocess.Popen(
                [sys.executable, "-m", *command, *more, *options],
                cwd=self._folder,
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.get("/health")

    def get(self, path: str) -> None:
        """Send a request until it is answered."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            try:
                answer = httpx.get(f"http://{self._address}{path}", timeout=SECONDS)
            except httpx.TransportError:  # it does not listen yet, or this worker ends
                time.sleep(0.05)
                continue
            assert answer.status_code == httpx.codes.OK, self.log
            return
        raise AssertionError(self.log)

    def answer(self, path: str) -> None:
        """Send the questions, a few at a time, and wait for all answers."""
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(self.get, [path] * QUESTIONS))

    def send(self, number: int, *, to_all: bool = False) -> None:
        """Send a signal to the master, or to all processes as a terminal does."""
        assert self._program is not None
        (os.killpg if to_all else os.kill)(self._program.pid, number)

    def end(self) -> None:
        """Wait for its end."""
        assert self._program is not None
        self._program.wait(SECONDS)

    def kill(self) -> None:
        """Kill its processes if it has not ended."""
        if self._program is not None and self._program.poll() is None:
            self.send(signal.SIGKILL, to_all=True)
            self._program.wait()

    @property
    def log(self) -> str:
        """What it has logged."""
        return (self._folder / "log").read_text()

    def recorded(self) -> int:
        """Return the number of recorded runs."""
        return len(TraceStore(self.database).traces(limit=None))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with OfflineServer(lambda _: "Hello.", keep_alive=True) as models:
        server = Server(tmp_path, models.base_url)
        yield server
        server.kill()


@pytest.mark.parametrize("path", ["/loop", "/thread"])
@pytest.mark.parametrize("options", [("--preload",), ()], ids=["preload", "no preload"])
def test_a_sigterm_after_the_last_answer_loses_nothing(
    server: Server, options: tuple[str, ...], path: str
) -> None:
    server.start(*options)
    server.answer(path)
    server.send(signal.SIGTERM)
    server.end()
    assert server.recorded() == QUESTIONS, server.log


@pytest.mark.parametrize("recorded", ["at import", "in the lifespan"])
@pytest.mark.parametrize("options", [("--preload",), ()], ids=["preload", "no preload"])
def test_ctrl_c_in_the_terminal_loses_nothing(
    server: Server, options: tuple[str, ...], recorded: str
) -> None:
    server.start(*options, recorded=recorded)
    server.answer("/loop")
    server.send(signal.SIGINT, to_all=True)
    server.end()
    assert server.recorded() == QUESTIONS, server.log


def test_a_reload_and_workers_that_are_replaced_after_some_requests_lose_nothing(server: Server) -> None:
    server.start("--preload", "--max-requests", "4")
    server.answer("/loop")
    server.send(signal.SIGHUP)
    server.answer("/loop")
    server.send(signal.SIGTERM)
    server.end()
    # More if a worker ends before it has sent an answer, and the question is sent again.
    assert server.recorded() >= 2 * QUESTIONS, server.log
