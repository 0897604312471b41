"""Starts, observes and stops the process that serves the page's application."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import attrs
import httpx

from tests.docs.pages import ROOT, Page
from tests.programs import Preloaded, Program

PAGE = Page(ROOT / "docs" / "guides" / "deploying.md")
SERVED = Path(__file__).parent / "served.py"
SECONDS = 60.0


@attrs.define
class Service:
    """A process that serves the page's application.

    Attributes:
        url: Base URL of the application.
        folder: Working directory of the process, with the trace database.
    """

    url: str
    folder: Path
    _process: Program
    _errors: Path

    @property
    def port(self) -> int:
        """Its port on 127.0.0.1."""
        return int(self.url.rpartition(":")[2])

    @property
    def errors(self) -> str:
        """Its log, without asyncio's message about connections that close while they are written to."""
        return self._errors.read_text(encoding="utf-8").replace("socket.send() raised exception.\n", "")

    async def state(self) -> dict[str, Any]:
        """Return its tasks, its number of open sockets, and its number of events by type."""
        return dict(await self._get("/-/state"))

    async def emitted(self, kind: str) -> int:
        """Return how many events of a type its runs have emitted so far."""
        return int((await self.state())["kinds"].get(kind, 0))

    async def events(self, run_id: str) -> list[tuple[int, str]]:
        """Return the sequence numbers and types of a run's events, as an observer received them."""
        return [(sequence, kind) for sequence, kind in await self._get(f"/-/events/{run_id}")]

    async def _get(self, path: str) -> Any:
        async with self.client() as client:
            return (await client.get(path, headers={"connection": "close"})).json()

    def client(self) -> httpx.AsyncClient:
        """Return an HTTP client for it."""
        limits = httpx.Limits(max_connections=None)
        return httpx.AsyncClient(base_url=self.url, timeout=SECONDS, limits=limits, trust_env=False)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._process.terminate()

    def stop(self) -> int:
        """Stop it with SIGTERM and return its exit code."""
        self.terminate()
        return self._process.wait(SECONDS)

    def kill(self) -> None:
        """Kill it after the test, whatever state it is in."""
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def serve(
    preloaded: Preloaded, folder: Path, environment: dict[str, str], options: dict[str, Any]
) -> Service:
    """Start the application in ``folder``; ``options["constants"]`` replaces constants of the page."""
    source = PAGE.script
    for name, value in options.get("constants", {}).items():
        source, count = re.subn(rf"(?m)^{name} = [0-9.]+", f"{name} = {value}", source)
        assert count == 1, name
    script = folder / "service.py"
    script.write_text(source, encoding="utf-8")
    errors = folder / "errors.txt"
    with errors.open("w", encoding="utf-8") as sink:
        process = preloaded.popen(
            ["-W", "error", SERVED, script, json.dumps(options)],
            cwd=folder,
            env=os.environ | environment,
            stderr=sink,
            encoding="utf-8",
        )
    assert process.stdout is not None
    port = process.stdout.readline().strip()
    assert port, errors.read_text(encoding="utf-8")
    return Service(f"http://127.0.0.1:{port}", folder, process, errors)


async def until(holds: Callable[[], Awaitable[bool]], what: Callable[[], str] = str) -> None:
    """Return as soon as ``await holds()`` is true; fail with ``what()`` after a minute."""
    with anyio.move_on_after(SECONDS):
        while not await holds():  # noqa: ASYNC110 - polls another process
            await anyio.sleep(0.02)
        return
    raise AssertionError(f"the condition did not become true: {what()}")


@attrs.frozen
class Message:
    """A server-sent event, or a comment."""

    kind: str
    id: int | None
    data: Any

    @classmethod
    def of(cls, text: str) -> Message:
        """Parse the text of one message."""
        fields = dict(line.split(": ", 1) for line in text.splitlines())
        if "" in fields:
            return cls("comment", None, fields[""])
        sequence = fields.get("id")
        return cls(fields["event"], None if sequence is None else int(sequence), json.loads(fields["data"]))


class Messages:
    """Splits received text into messages, whatever its chunks are."""

    def __init__(self) -> None:
        self._rest = ""

    def feed(self, text: str) -> Iterator[Message]:
        """Yield the messages that this chunk completes."""
        *complete, self._rest = (self._rest + text).split("\n\n")
        for one in complete:
            yield Message.of(one)


QUESTION = {"text": "What did I order?"}


def never(_: list[Message]) -> bool:
    """Read the whole stream."""
    return False


async def read_stream(
    client: httpx.AsyncClient, customer: str, is_enough: Callable[[list[Message]], bool] = never
) -> list[Message]:
    """Ask a question and return the messages received; disconnect as soon as they are enough."""
    read: list[Message] = []
    messages = Messages()
    request = client.stream("POST", "/stream", json=QUESTION, headers={"x-customer": customer})
    async with request as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        async for text in response.aiter_text():
            for one in messages.feed(text):
                read.append(one)
                if is_enough(read):
                    return read
    return read
