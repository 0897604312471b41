"""Three workers with one Postgres database, one of which is killed all the time."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kantan_agents import Agent
from kantan_agents.durable import Durable, DurableRuns
from kantan_agents.testing import OfflineServer, function_call
from kantan_agents.testing.recorded_request import RecordedRequest
from tests.programs import Preloaded

RUNS = 500 if os.environ.get("HYPOTHESIS_PROFILE") == "ci" else 100
KILL_INTERVAL = 1.0

_WORKER = """
import asyncio, os, sys
from kantan_agents import Agent
from kantan_agents.durable import Durable, DurableRuns, Limits

async def note(name: str) -> str:
    "Note a name."
    descriptor = os.open(os.environ["LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{name}\\n".encode())
    os.close(descriptor)
    return "noted"

agent = Agent("clerk", "Help.", model="gpt-6.1-terra", tools=[note], middleware=[Durable()])

async def main():
    queues = {"jobs": Limits(concurrency=5)}
    async with DurableRuns(os.environ["DB"], agents=[agent], queues=queues, look_interval=0.25):
        print("ready", flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


def _clerk(request: RecordedRequest) -> Any:
    if request.input[-1].get("type") == "function_call_output":
        return "Done."
    return [function_call("note", {"name": request.input[0]["content"]}, call_id="c1")]


def test_all_runs_end_although_a_worker_is_killed_every_second(
    preloaded: Preloaded, tmp_path: Path, postgres_url: str
) -> None:
    log = tmp_path / "log"

    async def queue_and_kill() -> Counter[str]:
        with OfflineServer(_clerk) as server, ExitStack() as stack:
            agent = Agent(
                "clerk", "Help.", model=server.bundle(), middleware=[Durable()], tool_providers=None
            )
            environ = {**os.environ, **server.environment(), "DB": postgres_url, "LOG": str(log)}
            output = stack.enter_context((tmp_path / "output").open("ab"))
            streams: Any = {"env": environ, "stdout": output, "stderr": output}
            workers = [preloaded.popen(["-c", _WORKER], **streams) for _ in range(3)]
            try:
                async with DurableRuns(postgres_url, agents=[agent]) as runs:
                    for number in range(RUNS):
                        await agent.enqueue(f"job-{number}", queue="jobs")
                    ended, kills, last = Counter[str](), 0, time.monotonic()
                    while ended["finished"] < RUNS:
                        await asyncio.sleep(0.1)
                        if time.monotonic() - last >= KILL_INTERVAL:
                            victim, last = kills % 3, time.monotonic()
                            workers[victim].kill()
                            workers[victim] = preloaded.popen(["-c", _WORKER], **streams)
                            kills += 1
                        ended = Counter(run.status for run in await runs.list_runs(limit=RUNS))
                        assert ended.keys() <= {"queued", "running", "finished"}
                    assert kills
            finally:
                for worker in workers:
                    worker.kill()
        return ended

    assert asyncio.run(queue_and_kill()) == {"finished": RUNS}
    noted = Counter(log.read_text().splitlines())
    assert len(noted) == RUNS
    # A call in flight is made again; no other is.
    assert sum(noted.values()) <= RUNS * 1.2
    assert max(noted.values()) <= 5


@pytest.mark.parametrize("ahead", [3600, -3600])
def test_a_clock_that_is_wrong_by_an_hour_takes_no_run_away(
    preloaded: Preloaded, tmp_path: Path, postgres_url: str, ahead: int
) -> None:
    code = f"import time\nreal = time.time\ntime.time = lambda: real() + {ahead}\n" + _WORKER
    log = tmp_path / "log"

    async def work() -> None:
        with OfflineServer(_clerk) as server, ExitStack() as stack:
            agent = Agent(
                "clerk", "Help.", model=server.bundle(), middleware=[Durable()], tool_providers=None
            )
            environ = {**os.environ, **server.environment(), "DB": postgres_url, "LOG": str(log)}
            output = stack.enter_context((tmp_path / "output").open("ab"))
            streams: Any = {"env": environ, "stdout": output, "stderr": output}
            workers = [preloaded.popen(["-c", one], **streams) for one in (code, _WORKER)]
            try:
                async with DurableRuns(postgres_url, agents=[agent]) as runs:
                    ids = [await agent.enqueue(f"job-{number}", queue="jobs") for number in range(20)]
                    for run_id in ids:
                        assert (await runs.result(run_id, timeout=60)).output == "Done."
            finally:
                for worker in workers:
                    worker.kill()

    asyncio.run(work())
    assert set(Counter(log.read_text().splitlines()).values()) == {1}
