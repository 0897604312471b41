"""The process of one framework, which executes tasks from standard input. Uses only the standard library.

    python worker.py FRAMEWORK

Each line of input is a task in JSON, ``{"do": ..., ...}``, and each line of output its answer, or
``{"error": TRACEBACK}``. The first line of output lists what the framework supports. The process ends when
its input ends.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import statistics
import sys
import time
import traceback
import tracemalloc
from collections.abc import Callable, Coroutine
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

RunOnce = Callable[[], Coroutine[Any, Any, object]]

TICK = 0.001
"""Seconds between the ticks that measure the lag of the event loop."""

REACH_SECONDS = 120.0
"""Maximum seconds until all waiting runs have reached their model."""


class Worker:
    """Runs the workloads of one framework module, all in one event loop."""

    def __init__(self, module: ModuleType, loop: asyncio.AbstractEventLoop) -> None:
        self._module = module
        self._loop = loop
        self._made: dict[str, Any] = {}
        self._runs: dict[str, int] = {}

    def hello(self) -> dict[str, Any]:
        """Return what this framework supports."""
        module = self._module
        return {
            "versions": {name: version(name) for name in module.PACKAGES},
            "workloads": [*module.RUNS, *module.CONSTRUCTIONS, *module.HELD],
            "absent": module.ABSENT,
            "import": module.IMPORT,
        }

    def answer(self, task: dict[str, Any]) -> Any:
        """Execute a task and return its answer.

        Raises:
            ValueError: The task is unknown.
        """
        task = dict(task)
        do = task.pop("do")
        os.environ.update(task.pop("environment", {}))
        if do == "forget":
            self._made.clear()
            gc.collect()
            return None
        if do == "construct":
            return self.construct(**task)
        if do in ("batch", "batch_for", "at_once", "late", "held"):
            return self._loop.run_until_complete(getattr(self, do)(**task))
        raise ValueError(f"there is no task {do!r}")

    async def batch(self, workload: str, count: int) -> float:
        """Return the average seconds of a run over ``count`` consecutive runs."""
        run = await self._warm(workload)
        start = time.perf_counter()
        for _ in range(count):
            await run()
        return (time.perf_counter() - start) / count

    async def batch_for(self, workload: str, seconds: float) -> dict[str, float]:
        """Return the average seconds of a run over the runs that begin within ``seconds``.

        The time includes writing what they record.

        Returns:
            ``seconds`` per run, and ``runs``, the total number of runs of this workload so far.
        """
        run = await self._warm(workload)
        count = 0
        start = now = time.perf_counter()
        while not count or now < start + seconds:
            await run()
            count += 1
            now = time.perf_counter()
        written = getattr(self._module, "WRITTEN", {}).get(workload)
        if written is not None:
            # The time of the runs includes what a thread still has to write for them.
            if not written():
                raise RuntimeError(f"what {workload} records was not written")
            now = time.perf_counter()
        self._runs[workload] = self._runs.get(workload, 0) + count + 1
        return {"seconds": (now - start) / count, "runs": self._runs[workload]}

    async def at_once(self, workload: str, size: int, count: int) -> float:
        """Return the average seconds of ``size`` concurrent runs over ``count`` repeats, per run."""
        run = await self._warm(workload)
        start = time.perf_counter()
        for _ in range(count):
            await asyncio.gather(*(run() for _ in range(size)))
        return (time.perf_counter() - start) / (count * size)

    async def late(self, workload: str, size: int, seconds: float) -> list[float]:
        """Return the lag of the event loop in seconds, while ``size`` runs at a time go on for ``seconds``.

        Every due tick counts, also those that came together because the loop was blocked.

        Returns:
            The median and the 99th percentile.
        """
        run = await self._warm(workload)
        end = time.perf_counter() + seconds

        async def repeat() -> None:
            while time.perf_counter() < end:
                await asyncio.gather(*(run() for _ in range(size)))

        runs = asyncio.create_task(repeat())
        late: list[float] = []
        due = time.perf_counter() + TICK
        while not runs.done():
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            now = time.perf_counter()
            while due <= now:
                late.append(now - due)
                due += TICK
        await runs
        percentiles = statistics.quantiles(late, n=100)
        return [percentiles[49], percentiles[98]]

    def construct(self, workload: str, count: int) -> float:
        """Return the average seconds to create an agent over ``count`` agents."""
        if workload not in self._made:
            self._made[workload] = self._module.CONSTRUCTIONS[workload]()
        make = self._made[workload]
        make()
        gc.collect()
        start = time.perf_counter()
        for _ in range(count):
            make()
        return (time.perf_counter() - start) / count

    async def held(self, workload: str, count: int) -> float:
        """Return the bytes that a run holds while it waits for its model, averaged over ``count`` runs.

        Raises:
            RuntimeError: A run ended early or did not reach its model.
        """
        gate, settled = asyncio.Event(), asyncio.Event()
        waiting = 0

        async def wait() -> None:
            nonlocal waiting
            waiting += 1
            if waiting == count:
                settled.set()
            await gate.wait()

        run = self._module.HELD[workload](wait)
        gate.set()
        await run()
        gate.clear()
        settled.clear()
        waiting = 0
        gc.collect()
        gc.disable()  # collections would scan all open runs again and again
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        tasks = [asyncio.create_task(run()) for _ in range(count)]
        for task in tasks:
            task.add_done_callback(lambda _: settled.set())
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(settled.wait(), REACH_SECONDS)
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        reached = waiting
        gate.set()
        await asyncio.gather(*tasks)
        gc.enable()
        if reached < count:
            raise RuntimeError(f"{reached} of {count} runs reached their model")
        return taken / count

    async def _warm(self, workload: str) -> RunOnce:
        """Return the run of ``workload``, after a warm-up and a garbage collection."""
        if workload not in self._made:
            self._made[workload] = self._module.RUNS[workload]()
        run: RunOnce = self._made[workload]
        await run()
        gc.collect()
        return run


def main(name: str) -> None:
    """Execute tasks until the input ends."""
    # The output of a framework must not be mistaken for an answer.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    worker = Worker(importlib.import_module(f"benchmarks.peers.frameworks.{name}"), loop)
    # For every framework, exclude the imported objects from garbage collections.
    gc.collect()
    gc.freeze()
    _write(out, worker.hello())
    for line in sys.stdin:
        try:
            answer = worker.answer(json.loads(line))
        except Exception:  # noqa: BLE001 - the answer has the error
            answer = {"error": traceback.format_exc()}
        _write(out, answer)


def _write(out: Any, answer: Any) -> None:
    out.write(json.dumps(answer) + "\n")
    out.flush()


if __name__ == "__main__":
    # In place of this folder: the folder that holds the ``benchmarks`` package.
    sys.path[0] = str(Path(__file__).resolve().parents[2])
    main(sys.argv[1])
