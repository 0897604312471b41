"""An evaluation that was interrupted at any point, and started again, is one that was never interrupted."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kantan_agents import TraceStore, record_traces
from kantan_agents.lab import CaseResult, Evaluation, Progress, evaluate, evaluate_async
from tests.lab.evaluation.experiment.counting import Asked, is_loud, length, words
from tests.sizes import examples
from tests.traces.recorder.conftest import folder, start
from tests.traces.recorder.processes import Start, wait_until

__all__ = ["folder", "start"]

CASES = tuple(map(str, range(4)))


def comparable(result: CaseResult) -> CaseResult:
    """Return a result without what differs from run to run."""
    return attrs.evolve(result, seconds=0.0, trace_id=None, first_trace_id=None)


def uninterrupted() -> list[CaseResult]:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "traces.sqlite3"
        recorder = record_traces(path)
        try:
            variants = {"one": Asked().agent, "two": Asked(version="v2", answer=str.lower).agent}
            found = evaluate(variants, words(*CASES), [length, is_loud], store=path).results
        finally:
            recorder.shutdown()
    return [comparable(one) for one in found]


@examples(12)
@given(stops=st.lists(st.integers(0, 7), max_size=2), concurrency=st.integers(1, 4), fails=st.booleans())
@example(stops=[0], concurrency=1, fails=False)
@example(stops=[3, 6], concurrency=4, fails=True)
def test_a_resumed_evaluation_equals_one_that_was_never_interrupted(
    stops: list[int], concurrency: int, fails: bool
) -> None:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "traces.sqlite3"
        recorder = record_traces(path)
        broken = {"3"} if fails else set()

        def shout(question: str) -> str:
            if question in broken:
                raise ValueError("broken")
            return question.upper()

        one, two = Asked(answer=shout), Asked(version="v2", answer=str.lower)

        async def attempt(stop: int | None) -> None:
            with anyio.CancelScope() as scope:

                def progress(now: Progress) -> None:
                    if stop is not None and now.done >= stop:
                        scope.cancel()

                await evaluate_async(
                    {"one": one.agent, "two": two.agent},
                    words(*CASES),
                    [length, is_loud],
                    concurrency=concurrency,
                    store=path,
                    progress=progress,
                )

        try:
            for stop in stops:
                anyio.run(attempt, stop)
            anyio.run(attempt, None)
            broken.clear()
            anyio.run(attempt, None)
            (evaluation,) = Evaluation.load_all(TraceStore(path))
            assert [comparable(result) for result in evaluation.results] == expected()
        finally:
            recorder.shutdown()


class _Expected:
    """The results without any interruption, made once."""

    def __init__(self) -> None:
        self.results: list[CaseResult] | None = None

    def __call__(self) -> list[CaseResult]:
        if self.results is None:
            self.results = uninterrupted()
        return self.results


expected = _Expected()

# Runs an evaluation and says so with each run that is done; from a certain model call on, all hang.
EVALUATION = """
from kantan_agents import Agent, Prompt, TraceStore
from kantan_agents.lab.evaluation import Case, Dataset, Evaluation, evaluate, evaluator
from kantan_agents.testing import ScriptedModel

hangs_at, calls = int(sys.argv[2]), 0


async def reply(call):
    global calls
    calls += 1
    if calls >= hangs_at:
        await asyncio.sleep(300)
    return "fine"


@evaluator(version="1")
def length(finished):
    return len(finished.text)


record_traces(path)
agent = Agent("a", Prompt("p", "v1", "Help."), model=ScriptedModel(reply))
dataset = Dataset("d", [Case(str(number), id=str(number)) for number in range(12)])
try:
    found = evaluate(
        agent, dataset, length, name="e", concurrency=3, progress=lambda now: say(f"done {now.done}")
    )
    scores = sum(len(one.scores) for one in found.results)
    say(f"results {len(found)}, scores {scores}, calls {calls}")
except KeyboardInterrupt:
    say(f"interrupted, kept {len(Evaluation.load_all(TraceStore(path))[0])}")
"""


def kept_in(path: Path) -> int:
    """Return how many results are in the file, those without scores included."""
    with closing(sqlite3.connect(path)) as connection:
        try:
            return int(
                connection.execute("SELECT COUNT(*) FROM kantan_agents_evaluation_results").fetchone()[0]
            )
        except sqlite3.OperationalError:  # the tables are not there yet
            return 0


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_process_that_is_killed_keeps_what_is_done_and_the_next_one_goes_on(
    start: Start, folder: Path, how: signal.Signals
) -> None:
    path = folder / "traces.sqlite3"
    first = start(EVALUATION, path, 7).until("done 6")  # the others hang
    wait_until(lambda: kept_in(path) == 6, lambda: first.err)
    first.send(how)
    status = first.wait()
    assert status == (-signal.SIGKILL if how is signal.SIGKILL else 0)
    assert ("interrupted, kept 6" in first.out) == (how is signal.SIGINT)
    second = start(EVALUATION, path, 1_000)
    assert second.wait() == 0, second.err
    assert "results 12, scores 12, calls 6" in second.out


def test_two_processes_at_the_same_evaluation_end_with_one_result_for_each_run(
    start: Start, folder: Path
) -> None:
    path = folder / "traces.sqlite3"
    both = [start(EVALUATION, path, 1_000), start(EVALUATION, path, 1_000)]
    for one in both:
        assert one.wait() == 0, one.err
        assert "results 12, scores 12" in one.out
    (evaluation,) = Evaluation.load_all(TraceStore(path))
    assert [one.case_id for one in evaluation.results] == [str(number) for number in range(12)]
    assert kept_in(path) == 12
