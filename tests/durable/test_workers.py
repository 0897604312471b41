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

from kantan_agents import Agent, Durable, DurableRuns
from kantan_agents.testing import OfflineServer, RecordedRequest, function_call
from tests.durable.conftest import default_engine
from tests.programs import Preloaded
from tests.sizes import size

RUNS = size(200, 60)
KILL_INTERVAL = 1.0
AT_ONCE = 5

_WORKER = """
import asyncio, os, sys
from kantan_agents import Agent
from kantan_agents.durable import Durable, DurableRuns, Limits

async def note(name: str) -> str:
    "Note a name."
    descriptor = os.open(os.environ["LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{name} {os.getpid()}\\n".encode())
    os.close(descriptor)
    return "noted"

agent = Agent("clerk", "Help.", model="gpt-6.1-terra", tools=[note], middleware=[Durable()])

async def main():
    queues = {"jobs": Limits(concurrency=int(os.environ["AT_ONCE"]))}
    given = {"queues": queues, "look_interval": 0.25, "engine": os.environ["ENGINE"]}
    async with DurableRuns(os.environ["DB"], agents=[agent], **given):
        print("ready", flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


def _clerk(request: RecordedRequest) -> Any:
    if request.input[-1].get("type") == "function_call_output":
        return "Done."
    return [function_call("note", {"name": request.input[0]["content"]}, call_id="c1")]


def _environment(server: OfflineServer, url: str, log: Path) -> dict[str, str]:
    of_worker = {"DB": url, "LOG": str(log), "AT_ONCE": str(AT_ONCE), "ENGINE": default_engine()}
    return {**os.environ, **server.environment(), **of_worker}


def _noted(log: Path) -> list[tuple[str, int]]:
    """Return each noted name with the process that has noted it."""
    lines = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
    return [(name, int(process)) for name, process in lines]


@pytest.mark.usefixtures("each_engine")
def test_all_runs_end_although_a_worker_is_killed_every_second(
    preloaded: Preloaded, tmp_path: Path, postgres_url: str
) -> None:
    log = tmp_path / "log"
    answered: dict[str, int] = {}

    def clerk(request: RecordedRequest) -> Any:
        said = _clerk(request)
        if said == "Done.":
            name = request.input[0]["content"]
            answered.setdefault(name, [one for one, _ in _noted(log)].count(name))
        return said

    async def queue_and_kill() -> tuple[int, int]:
        with OfflineServer(clerk) as server, ExitStack() as stack:
            agent = Agent(
                "clerk", "Help.", model=server.bundle(), middleware=[Durable()], tool_providers=None
            )
            environ = _environment(server, postgres_url, log)
            output = stack.enter_context((tmp_path / "output").open("ab"))
            streams: Any = {"env": environ, "stdout": output, "stderr": output}
            workers = [preloaded.popen(["-c", _WORKER], **streams) for _ in range(3)]
            try:
                async with DurableRuns(postgres_url, agents=[agent]) as runs:
                    ended, kills, last, queued = Counter[str](), 0, time.monotonic(), 0
                    while not kills or ended["finished"] < queued:
                        if ended["finished"] == queued:  # again, if all have ended before the first kill
                            for number in range(queued, queued + RUNS):
                                await agent.enqueue(f"job-{number}", queue="jobs")
                            queued += RUNS
                        await asyncio.sleep(0.2)
                        # A run is parked when too many processes have ended while they made it. So each
                        # makes at least as many calls as it may have taken over, however slow all is.
                        made = Counter(process for _, process in _noted(log))
                        able = [number for number in range(3) if made[workers[number].pid] >= AT_ONCE]
                        if able and time.monotonic() - last >= KILL_INTERVAL:
                            victim, last = able[kills % len(able)], time.monotonic()
                            workers[victim].kill()
                            workers[victim] = preloaded.popen(["-c", _WORKER], **streams)
                            kills += 1
                        ended = Counter(run.status for run in await runs.list_runs(limit=queued))
                        assert ended.keys() <= {"queued", "running", "finished"}
            finally:
                for worker in workers:
                    worker.kill()
        return queued, kills

    queued, kills = asyncio.run(queue_and_kill())
    noted = Counter(name for name, _ in _noted(log))
    # A call in flight is made again; one whose result the model has seen is not.
    assert len(noted) == queued
    assert noted == answered
    assert sum(noted.values()) <= queued + AT_ONCE * kills
    assert max(noted.values()) <= 1 + kills


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
            environ = _environment(server, postgres_url, log)
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
    assert set(Counter(name for name, _ in _noted(log)).values()) == {1}
