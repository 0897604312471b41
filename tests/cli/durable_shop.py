"""Durable agents in a module, the model behind them, and a worker that makes their runs."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kantan_agents.durable import DurableRun, DurableRuns
from kantan_agents.durable.middleware import queued_job
from kantan_agents.testing import OfflineServer, function_call
from tests.programs import Preloaded, Program

MODULE = '''
import asyncio
import time
from pathlib import Path

from kantan_agents import Agent
from kantan_agents.durable import Durable
from kantan_agents.middleware import Approve


def note(line):
    with open("effects", "a") as file:
        file.write(line + "\\n")


async def pay(amount: int, to: str = "") -> str:
    """Pay."""
    note(f"pay {amount}")
    return f"paid {amount}"


async def look(what: str) -> str:
    """Look at something, as soon as the file `go` exists."""
    note(f"look {what}")
    while not Path("go").exists():
        await asyncio.sleep(0.02)
    note(f"saw {what}")
    return "seen"


def hold() -> str:
    """Hold a thread, until the file `go` exists."""
    note("hold")
    while not Path("go").exists():
        time.sleep(0.02)
    return "held"


MODEL = {"model": "gpt-6.1-terra", "tool_providers": None}
asks = Agent("asks", "Help.", tools=[pay], middleware=[Approve("pay"), Durable()], **MODEL)
looks = Agent("looks", "Help.", tools=[look, hold], middleware=[Durable()], **MODEL)
fleeting = Agent("fleeting", "Help.", **MODEL)
both = [asks, looks]
made = lambda: (asks,)
number = 3
nothing = []
'''

HOSTILE = "\x1b[31mred\x1b[0m [bold]bold[/bold] \u202eltr\U000e0041\nnext"


def answer(request: Any) -> Any:
    """Answer as the model: call the tool that the question names, then say what it has returned."""
    text = json.dumps(request.body["input"], ensure_ascii=False)
    if "function_call_output" in text:
        return HOSTILE if "hostile" in text else "All done."
    if "hostile" in text:
        return function_call("pay", {"amount": 5, "to": HOSTILE}, call_id="c/1")
    if "twice" in text:
        return [function_call("pay", {"amount": n}, call_id=f"c{n}") for n in (1, 2)]
    if "pay" in text:
        return function_call("pay", {"amount": 3}, call_id="c1")
    if "hold" in text:
        return function_call("hold", {}, call_id="h1")
    if "look" in text:
        return function_call("look", {"what": "sky"}, call_id="l1")
    return "Hello."


class Shop:
    """A folder with the module ``durable_shop_agents``, a database and a model.

    Attributes:
        folder: The folder.
        database: URL of the database of durable runs.
    """

    def __init__(self, folder: Path, server: OfflineServer, preloaded: Preloaded, database: str = "") -> None:
        self.folder = folder
        self.database = database or f"sqlite:///{folder / 'durable.sqlite3'}"
        self._server = server
        self._preloaded = preloaded
        (folder / "durable_shop_agents.py").write_text(MODULE)

    def enqueue(self, agent: str, question: str, queue: str = "support") -> str:
        """Put a run into a queue, and return its id."""
        namespace: dict[str, Any] = {}
        exec(MODULE, namespace)
        job = queued_job(
            namespace[agent],
            question,
            None,
            may_leave_out=False,
            queue=queue,
            priority=None,
            dedup_key=None,
            tenant=None,
            delay=None,
            run_options={},
        )
        return str(self.ask(lambda runs: runs.enqueue(job)))

    def ask(self, work: Callable[[DurableRuns], Any]) -> Any:
        """Do something with the runs, in this process."""

        async def done() -> Any:
            runs = DurableRuns(self.database)
            try:
                return await work(runs)
            finally:
                await runs.stop()

        return asyncio.run(done())

    def wait_for(self, run_id: str, *statuses: str) -> DurableRun:
        """Wait until a run has a status."""

        async def look(runs: DurableRuns) -> DurableRun:
            while True:
                run = await runs.get(run_id)
                if run.status in statuses:
                    return run
                await asyncio.sleep(0.05)

        found: DurableRun = self.ask(lambda runs: asyncio.wait_for(look(runs), 60))
        return found

    @property
    def effects(self) -> list[str]:
        """What the tools have done."""
        path = self.folder / "effects"
        return path.read_text().splitlines() if path.exists() else []

    @contextmanager
    def worker(self, *arguments: str) -> Iterator[Program]:
        """Start a worker, wait until it is ready, and kill it at the end if it still runs."""
        program = self._preloaded.popen(
            [
                *("-m", "kantan_agents", "worker", "durable_shop_agents:both"),
                *("--queue", "support", "--db", self.database, *arguments),
            ],
            cwd=self.folder,
            env={**os.environ, **self._server.environment()},
            encoding="utf-8",
        )
        try:
            assert program.stderr is not None
            read: list[str] = []
            while not read or "is ready" not in read[-1]:  # it may log first what it has taken over
                read.append(program.stderr.readline())
                assert read[-1], read
            line = read[-1]
            program.ready = line  # type: ignore[attr-defined]
            yield program
        finally:
            program.kill()
            program.communicate()
