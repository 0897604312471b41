"""Measures the cost of a rollout in a run and of reading its evidence, then the promises of its statistics.

    python benchmarks/rollout.py [--repeats 41] [--quick] [--only-cost]

Two sides take turns in short batches, as in the other benchmarks: runs of an agent with a prompt, and of the
same agent with a rollout. Models answer at once. The goal is 5 microseconds for choosing an arm.
``rollout_statistics.py`` has the second part.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from rich.console import Console

if __name__ == "__main__":
    # Not this folder, whose statistics.py would hide that of the standard library.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks import measure, rollout_statistics
from benchmarks.measure import environment, timed, timed_call
from benchmarks.overhead import FakeModel
from benchmarks.report import Report
from kantan_agents import Agent, Prompt, Rollout, SQLiteRecorder, record_traces, set_trace_processors
from kantan_agents.lab.experiment.database import prepare_database
from kantan_agents.lab.rollout import status

CHOICE_MICROSECONDS = 5.0
V1 = Prompt("support", "v1", "Answer in one sentence.")
V2 = Prompt("support", "v2", "Answer in one sentence, and be kind.")
RUNS = 10_000


def agents(store: Path, answer: str = "Fine.") -> tuple[Agent[Any], Agent[Any]]:
    """Return an agent with a prompt, and the same one with a rollout."""
    rollout = Rollout(
        {"v1": V1, "v2": V2},
        ramp=(0.5, 1),
        unit="user.id",
        guards={"error": 0.02, "latency_p95": "+30%"},
        store=store,
    )
    return Agent("plain", V1, model=FakeModel(answer)), Agent("support", rollout, model=FakeModel(answer))


async def cost(report: Report, store: Path) -> None:
    """Measure choosing an arm, and runs with and without a rollout."""
    plain, rolled = agents(store)
    users = count()

    def context() -> dict[str, Any]:
        return {"user": {"id": next(users)}}

    report.begin("1. a run", "a prompt", "a rollout")
    await report.row(
        "one turn",
        timed(lambda: plain.run_async("Hi", context())),
        timed(lambda: rolled.run_async("Hi", context())),
        20,
    )
    choose = rolled._choose
    assert choose is not None
    report.begin("2. choosing an arm", "a context", "and its arm")
    seconds, ratio = await report.row(
        "one choice", timed_call(context), timed_call(lambda: choose("Hi", context())), 1_000
    )
    chosen = seconds * (ratio - 1) * 1e6
    report.say(f"   choosing takes {chosen:.2f} us (goal {CHOICE_MICROSECONDS:.0f})")
    if chosen > CHOICE_MICROSECONDS:
        report.missed.append(f"choosing an arm: {chosen:.2f} us")


async def reading(report: Report, store: Path) -> None:
    """Measure how long a status of many runs takes, and the check of a few more."""
    _, rolled = agents(store)
    with recorded(store) as recorder:
        number = 0
        runs = 20 if measure.shortest else RUNS
        while number < runs:
            chunk = range(number, min(number + 500, runs))
            await asyncio.gather(*(rolled.run_async("Hi", {"user": {"id": one}}) for one in chunk))
            number = chunk.stop
            recorder.force_flush()  # its queue is limited
    with sqlite3.connect(store) as connection:
        spans = connection.execute("SELECT COUNT(*) FROM spans").fetchone()[0]
    start = time.perf_counter()
    found = status("support", store)
    seconds = time.perf_counter() - start
    report.say("")
    report.say(f"3. status of {sum(arm.runs for arm in found.arms):,} runs, {spans:,} spans: {seconds:.2f} s")


@contextmanager
def recorded(store: Path) -> Iterator[SQLiteRecorder]:
    """Record runs in a file."""
    recorder = record_traces(store)
    try:
        yield recorder
    finally:
        recorder.shutdown()
        set_trace_processors([])


async def main(repeats: int) -> list[str]:
    """Measure the cost and return the goals that were missed."""
    set_trace_processors([])
    report = Report(Console(width=110), repeats)
    report.say(f"{environment('openai-agents', 'openai', 'kantan-llm')}; {repeats} repeats")
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "traces.sqlite3"
        prepare_database(store)
        await cost(report, store)
        await reading(report, store)
    return report.missed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=41, help="batches a side (default 41)")
    parser.add_argument("--quick", action="store_true", help="3 repeats, and few rollouts, for CI")
    parser.add_argument("--only-cost", action="store_true", help="leave out the statistics")
    arguments = parser.parse_args()
    missed = asyncio.run(main(3 if arguments.quick else max(9, arguments.repeats)))
    if not arguments.only_cost:
        console = Console(width=None if sys.stdout.isatty() else 120)
        rollouts = rollout_statistics.QUICK if arguments.quick else rollout_statistics.WHOLE
        missed += rollout_statistics.report(console, 4 if measure.shortest else rollouts, 2)
    for goal in missed:
        sys.stdout.write(f"GOAL MISSED  {goal}\n")
    sys.exit(1 if missed and not arguments.quick else 0)
