"""Measures what a durable step costs beside one of DBOS, what a durable run costs, and what workers add.

    python benchmarks/durable.py [--repeats 21] [--quick] [--picture FILE.png]
    python benchmarks/durable.py --only steps|takeovers|waiters|workers

The steps of both take turns in one SQLite file, and in one Postgres. The goal is 1.5 times a step of DBOS.
A takeover begins when the process of a run is killed, and ends when another one asks the model again. The
workers are processes with one Postgres, which is started for the measurement and does not sync to the disk;
their models take 50 ms. Those who wait (`runs.result`) are in the process that makes runs, each for another
run. The goal is 1.1 times the run without them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

if __name__ == "__main__":
    # Not this folder, whose statistics.py would hide that of the standard library.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import statistics

from agents import set_trace_processors

from benchmarks import measure
from benchmarks.measure import environment, timed
from benchmarks.overhead import FakeModel
from benchmarks.report import Report
from kantan_agents import Agent
from kantan_agents.durable import Durable, DurableRuns
from kantan_agents.durable.execution import Execution
from kantan_agents.durable.storage.database import RunDatabase
from kantan_agents.durable.storage.steps import StepStore
from tests.postgres_server import fresh_database, own_server

STEP_GOAL = 1.5
WAITING_GOAL = 1.1
WAITERS = (200, 1_000)
WORKERS = (1, 2, 3, 4)
RUNS = 200
TAKEOVERS = 31
MODEL_SECONDS = 0.05
BODY = {"form": "text", "output": [{"type": "message", "content": "x" * 500}], "usage": {}}


async def steps(report: Report, database: str, place: str) -> None:
    """Measure a step of DBOS and one of a durable run, in one database."""
    from dbos import DBOS, SetWorkflowID

    storage = StepStore(RunDatabase(database))

    async def nothing() -> str:
        return "x" * 500

    @DBOS.workflow()
    async def with_steps(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            await DBOS.run_step_async({"name": "step"}, nothing)
        return time.perf_counter() - start

    async def of_dbos(count: int) -> float:
        with SetWorkflowID(uuid.uuid4().hex):
            return float(await with_steps(count)) / count

    async def of_ours(count: int, *, begins: bool) -> float:
        execution = Execution(uuid.uuid4().hex, storage, frozenset())
        await execution.begin()
        start = time.perf_counter()
        for number in range(count):
            if begins:
                await execution.check()
            await execution.finish(execution.root_id, f"step/{number}", BODY)
        return (time.perf_counter() - start) / count

    report.begin(f"1. a step in {place}", "of DBOS", "durable")
    await report.row("the answer of a model", of_dbos, lambda n: of_ours(n, begins=False), 20, goal=STEP_GOAL)
    await report.row("a tool call", of_dbos, lambda n: of_ours(n, begins=True), 20, goal=STEP_GOAL)


async def runs(report: Report, database: str, place: str) -> None:
    """Measure steps, a whole run without a model, and the same run durable."""
    plain = Agent("plain", "Answer.", model=FakeModel("Fine."), tool_providers=None)
    durable = Agent(
        "durable", "Answer.", model=FakeModel("Fine."), middleware=[Durable()], tool_providers=None
    )
    async with DurableRuns(database, agents=[durable]):
        await steps(report, database, place)
        report.begin(f"2. a run of one turn in {place}", "as it is", "durable")
        await report.row(
            "one turn",
            timed(lambda: plain.run_async("Hi")),
            timed(lambda: durable.run_async("Hi")),
            10,
        )


_LEFT = """
import asyncio, sys
from agents import set_trace_processors
from benchmarks.overhead import FakeModel
from kantan_agents import Agent
from kantan_agents.durable import Durable, DurableRuns

class Waiting(FakeModel):
    async def get_response(self, *args, **kwargs):
        print("asked", flush=True)
        await asyncio.sleep(3600)

async def main():
    set_trace_processors([])
    agent = Agent("clerk", "Answer.", model=Waiting("Fine."), middleware=[Durable()], tool_providers=None)
    async with DurableRuns(sys.argv[1], agents=[agent]):
        await agent.run_async("Hi")

asyncio.run(main())
"""


class Noticing(FakeModel):
    """A model that notes when it is asked."""

    def __init__(self, answer: str) -> None:
        super().__init__(answer)
        self.asked: asyncio.Queue[float] = asyncio.Queue()
        self.loop = asyncio.get_running_loop()

    async def get_response(self, *args: Any, **kwargs: Any) -> Any:
        """Note the time, and answer."""
        self.loop.call_soon_threadsafe(self.asked.put_nowait, time.perf_counter())
        return await super().get_response(*args, **kwargs)


async def takeovers(report: Report, url: str, place: str, count: int) -> None:
    """Measure how long a run waits when its process is killed, until this process goes on with it."""
    model = Noticing("Fine.")
    agent = Agent("clerk", "Answer.", model=model, middleware=[Durable()], tool_providers=None)
    found = []
    async with DurableRuns(url, agents=[agent]):
        for _ in range(count):
            (left,) = await asyncio.to_thread(start_workers, url, 1, _LEFT)
            await asyncio.sleep(random.random())  # any moment between two looks
            left.kill()
            start = time.perf_counter()
            found.append(await model.asked.get() - start)
            left.communicate()
    low, middle, high = statistics.quantiles(found, n=4) if count > 1 else found * 3
    report.say(f"5. a takeover in {place}: {middle:.2f} s ({low:.2f} to {high:.2f}), {count} of them")


_WORKER = """
import asyncio, sys
from agents import set_trace_processors
from benchmarks.overhead import FakeModel
from kantan_agents import Agent
from kantan_agents.durable import Durable, DurableRuns, Limits

class Slow(FakeModel):
    async def get_response(self, *args, **kwargs):
        await asyncio.sleep({seconds})
        return await super().get_response(*args, **kwargs)

async def main():
    set_trace_processors([])
    agent = Agent("clerk", "Answer.", model=Slow("Fine."), middleware=[Durable()], tool_providers=None)
    queues = {{"jobs": Limits(concurrency=10)}}
    async with DurableRuns(sys.argv[1], agents=[agent], queues=queues, look_interval=0.1):
        print("ready", flush=True)
        await asyncio.sleep(3600)

asyncio.run(main())
"""


def start_workers(url: str, number: int, program: str = "") -> list[subprocess.Popen[bytes]]:
    """Start workers, or other processes, and return when they are ready."""
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    command = [sys.executable, "-c", program or _WORKER.format(seconds=MODEL_SECONDS), url]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, env=environ) for _ in range(number)]
    for worker in started:
        assert worker.stdout is not None
        worker.stdout.readline()
    return started


async def throughput(url: str, workers: int, count: int) -> float:
    """Return the runs that a number of workers make in a second."""
    agent = Agent("clerk", "Answer.", model=FakeModel("Fine."), middleware=[Durable()], tool_providers=None)
    started = await asyncio.to_thread(start_workers, url, workers)
    try:
        async with DurableRuns(url, agents=[agent]) as durable_runs:
            start = time.perf_counter()
            ids = [await agent.enqueue(f"job {number}", queue="jobs") for number in range(count)]
            for run_id in ids:
                await durable_runs.result(run_id)
            return count / (time.perf_counter() - start)
    finally:
        for worker in started:
            worker.kill()
            worker.communicate()


async def workers(report: Report, count: int, counts: tuple[int, ...]) -> dict[int, float]:
    """Measure the runs per second of several numbers of workers, each with a database of its own."""
    report.say("")
    report.say(f"3. runs in a second from a queue in Postgres: {count} of one turn with a model of 50 ms")
    found: dict[int, float] = {}
    with own_server() as server:
        for number in counts:
            with fresh_database(server.url) as url:
                found[number] = await throughput(url, number, count)
            report.say(f"   {number} workers with 10 runs at once: {found[number]:6.1f} runs/s")
    return found


async def waiters(report: Report, url: str, counts: tuple[int, ...], idle: float) -> None:
    """Measure what a run pays for those who wait in its process, and what they cost while nothing happens."""
    agent = Agent("waited", "Answer.", model=FakeModel("Fine."), middleware=[Durable()], tool_providers=None)
    async with DurableRuns(url, agents=[agent]) as durable_runs:
        ids = [await agent.enqueue(f"{number}", queue="nobody") for number in range(max(counts))]

        @asynccontextmanager
        async def waiting(number: int) -> AsyncIterator[None]:
            tasks = [asyncio.create_task(durable_runs.result(run_id)) for run_id in ids[:number]]
            await asyncio.sleep(0.5)
            yield
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        alone = timed(lambda: agent.run_async("Hi"))

        async def beside(count: int, number: int) -> float:
            async with waiting(number):
                return await alone(count)

        async def cpu(number: int) -> float:
            async with waiting(number):
                start, began = time.process_time(), time.perf_counter()
                await asyncio.sleep(idle)
                return (time.process_time() - start) / (time.perf_counter() - began)

        report.begin(
            "4. a run of one turn in Postgres, with others who wait in its process", "alone", "beside"
        )
        for number in counts:
            # Both after the same pause.
            base, other = partial(beside, number=0), partial(beside, number=number)
            await report.row(f"{number} wait", base, other, 20, goal=WAITING_GOAL)
        nobody = await cpu(0)
        for number in counts:
            report.say(f"   {number} who wait take {100 * (await cpu(number) - nobody):.2f} % of a core")


def draw(path: Path, found: dict[int, float]) -> None:
    """Draw the throughput against the number of workers."""
    from benchmarks.plot import framed

    title = "Runs from a queue in a second, by workers (Postgres, models of 50 ms)"
    with framed(path, (8.0, 4.2), title=title, caption=environment("dbos", "openai-agents")) as axes:
        axes.plot([*found], [*found.values()], marker="o", color="#3b6ea5")
        axes.set_xticks([*found])
        axes.set_xlabel("workers, each with 10 runs at once")
        axes.set_ylabel("runs per second")
        axes.set_ylim(bottom=0)


async def main(repeats: int, picture: Path | None, only: str, *, quick: bool) -> list[str]:
    """Measure one part, or everything if ``only`` is empty, and return the goals that were missed."""
    set_trace_processors([])
    report = Report(Console(width=110), repeats)
    report.say(f"{environment('openai-agents', 'openai', 'dbos')}; {repeats} repeats")
    with tempfile.TemporaryDirectory() as folder, own_server() as server, fresh_database(server.url) as url:
        places = {"a file": f"sqlite:///{Path(folder) / 'runs.sqlite3'}", "Postgres": url}
        for place, database in places.items():
            if only in ("", "steps"):
                await runs(report, database, place)
        if only in ("", "waiters"):
            await waiters(report, url, (20,) if quick else WAITERS, 1.0 if quick else 10.0)
        report.say("")
        for place, database in places.items():
            if only in ("", "takeovers"):
                await takeovers(report, database, place, 1 if quick else TAKEOVERS)
    if only in ("", "workers"):
        found = await workers(report, 10 if quick else RUNS, (1, 2) if quick else WORKERS)
        if picture is not None:
            draw(picture, found)
    return report.missed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=21)
    parser.add_argument("--quick", action="store_true", help="three repeats and few runs")
    parser.add_argument("--picture", type=Path, help="write the picture of the workers to this PNG file")
    parser.add_argument(
        "--only", choices=("steps", "takeovers", "waiters", "workers"), default="", help="measure only this"
    )
    given = parser.parse_args()
    fewer = given.quick or measure.shortest
    missed = asyncio.run(main(3 if fewer else given.repeats, given.picture, given.only, quick=fewer))
    if missed:
        sys.stderr.write("".join(f"missed: {goal}\n" for goal in missed))
    raise SystemExit(1 if missed and not fewer else 0)
