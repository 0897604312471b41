"""Measures what an evaluation costs beside its runs, and how long it takes to find nothing to do.

    python benchmarks/evaluation.py [--repeats 7] [--quick]

Two sides take turns: so many runs of an agent, 50 at a time, and an evaluation of as many cases by the same
agent with one evaluator. A model takes 50 ms. Both are recorded in the same way, and both end when all runs
are in the file. A ratio is the median of the ratios of neighbouring batches, and ``A/A`` the runs against
themselves. Then an evaluation with 100,000 finished cases is started again.

Runs that start together stay in step: all wait for their models, and then all have work. An evaluation starts
its first runs a millisecond apart, so that some work while others wait, which the first row includes. In the
second row, which has no goal, the runs start apart too.

``python benchmarks/statistics.py`` measures comparisons. Missed goals are listed at the end, and the exit
code is then 1, except with ``--quick``.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import anyio
import anyio.to_thread
from rich.console import Console

if __name__ == "__main__":
    # Not this folder, whose statistics.py would hide that of the standard library.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.measure import Measure, environment
from benchmarks.report import Report
from benchmarks.trace_runs import TracedModel
from kantan_agents import Agent, Prompt, record_traces
from kantan_agents.lab.evaluation import Case, Dataset, FinishedCase, Score, evaluate_async, evaluator
from kantan_agents.lab.evaluation.experiment.results import CaseResult
from kantan_agents.lab.evaluation.experiment.rows import RatedScore
from kantan_agents.lab.evaluation.experiment.write_rows import write_result, write_scores
from kantan_agents.traces.recorder import SQLiteRecorder
from kantan_agents.traces.store.connection import changing, transaction

AT_ONCE = 50
MODEL_SECONDS = 0.05
OVERHEAD = 1.05
RESUMED_SECONDS = 2.0
RUNS, FINISHED = 1_000, 100_000
QUICK_RUNS, QUICK_FINISHED = 100, 2_000
PACKAGES = ("openai-agents", "openai", "kantan-llm")


@evaluator(version="1")
async def length(finished: FinishedCase) -> int:
    """Score a run by the length of its answer."""
    return len(finished.text)


def main() -> int:
    """Run the command line and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7, metavar="N", help="batches per side (default 7)")
    parser.add_argument("--quick", action="store_true", help="a check of seconds; its figures say little")
    options = parser.parse_args()
    report = Report(Console(width=110), 1 if options.quick else options.repeats)
    report.say(environment(*PACKAGES))
    gc.collect()
    gc.freeze()
    with tempfile.TemporaryDirectory() as folder:
        recorder = record_traces(Path(folder) / "traces.sqlite3")
        try:
            asyncio.run(_measure(report, recorder, quick=options.quick))
        finally:
            recorder.shutdown()
    for line in report.missed:
        report.say(f"GOAL MISSED  {line}")
    return 1 if report.missed and not options.quick else 0


async def _measure(report: Report, recorder: SQLiteRecorder, *, quick: bool) -> None:
    prompt = Prompt("support", "v1", "Answer briefly.")
    agent = Agent("support", prompt, model=TracedModel("It is sunny.", seconds=MODEL_SECONDS))
    runs = QUICK_RUNS if quick else RUNS
    report.begin(f"{AT_ONCE} at a time, a run", "runs", "evaluation")
    evaluated = _evaluated(agent, recorder, runs)
    await report.row("a case with one evaluator", _bare(agent, recorder, runs), evaluated, 1, goal=OVERHEAD)
    apart = _bare(agent, recorder, runs, seconds_apart=0.001)
    await report.row("beside runs that start apart", apart, evaluated, 1)
    await _resume(report, agent, recorder.path, QUICK_FINISHED if quick else FINISHED)


def _bare(agent: Agent, recorder: SQLiteRecorder, runs: int, *, seconds_apart: float = 0.0) -> Measure:
    async def batch(_count: int) -> float:
        recorder.force_flush(60)
        gc.collect()
        start = time.perf_counter()
        questions = iter(range(runs))
        async with anyio.create_task_group() as group:
            for number in range(AT_ONCE):
                group.start_soon(_ask, agent, questions, number * seconds_apart)
        # An evaluation, too, ends when its runs are in the file.
        await anyio.to_thread.run_sync(recorder.force_flush, 60)
        return (time.perf_counter() - start) / runs

    return batch


async def _ask(agent: Agent, questions: Iterator[int], delay: float) -> None:
    await anyio.sleep(delay)
    for number in questions:
        await agent.run_async(f"Question {number}", {})


def _evaluated(agent: Agent, recorder: SQLiteRecorder, runs: int) -> Measure:
    names = count()
    dataset = Dataset("questions", _cases(runs))

    async def batch(_count: int) -> float:
        recorder.force_flush(60)
        gc.collect()
        start = time.perf_counter()
        name = f"evaluation {next(names)}"
        evaluation = await evaluate_async(agent, dataset, length, concurrency=AT_ONCE, name=name)
        seconds = (time.perf_counter() - start) / runs
        if len(evaluation) != runs or evaluation.failed:
            raise RuntimeError(f"{len(evaluation)} of {runs} runs, {len(evaluation.failed)} failed")
        return seconds

    return batch


def _cases(number: int) -> list[Case]:
    return [Case(f"Question {one}", id=f"case {one}") for one in range(number)]


async def _resume(report: Report, agent: Agent, path: Path, finished: int) -> None:
    """Print how long an evaluation takes whose runs are all finished and scored."""
    dataset = Dataset("finished", _cases(finished))
    first = await evaluate_async(agent, dataset.sample(1), length, name="finished")
    variant = first.row.body["variants"]["support v1"]["hash"]
    score = RatedScore("length", Score(1.0), "", "length", length.version)
    with changing(path) as connection, transaction(connection):
        for case in dataset:
            result = CaseResult(
                case.id, case.hash, None, "support v1", 0, "finished", "x", None, None, 1.0, 10, 5, None, 1
            )
            written = write_result(connection, first.row, case, variant, result)
            if written is not None:
                write_scores(connection, written, [score])
    fresh = Dataset("finished", _cases(finished))
    start = time.perf_counter()
    again = await evaluate_async(agent, fresh, length, name="finished")
    seconds = time.perf_counter() - start
    if again.planned != finished:
        raise RuntimeError(f"{again.planned} runs were planned, not {finished}")
    report.say(f"\n{finished:,} finished cases, found in {seconds:.2f} s (goal {RESUMED_SECONDS:.0f} s)")
    report.judge("finished cases", seconds, RESUMED_SECONDS, f"{seconds:.2f} s")


if __name__ == "__main__":
    sys.exit(main())
