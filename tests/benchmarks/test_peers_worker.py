"""Real worker processes, and the errors of those that fail."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.peers.fleet import Fleet, Worker, WorkerError, clean_environment, model_server, worker_files
from benchmarks.peers.imports import import_seconds

MADE_UP = """
import os
import sys
from benchmarks.peers.frameworks import facts

PACKAGES = ("pip",)
IMPORT = "import json"
ABSENT = {"streaming": "It cannot."}
RUNS_SO_FAR = []


async def right():
    print("chatter on standard output")
    RUNS_SO_FAR.append(1)


async def wrong():
    facts.expect("rain", "sun")


async def dead():
    sys.stderr.write("last words\\n")
    sys.stderr.flush()
    os._exit(3)


def held(wait):
    kept = []

    async def run():
        text = bytes(100_000)
        await wait()
        kept.append(len(text))

    return run


def early(wait):
    return right


_RUNS = {"right": right, "counted": right, "wrong": wrong, "dead": dead}
RUNS = {name: lambda run=run: run for name, run in _RUNS.items()}
CONSTRUCTIONS = {"construct_0": lambda: object}
HELD = {"held_0": held, "early": early}
RUNS["lost"] = lambda: right
WRITTEN = {"lost": lambda: False}
"""


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    with worker_files() as files:
        (files.parent / "frameworks" / "made_up.py").write_text(MADE_UP, encoding="utf-8")
        (files.parent / "frameworks" / "broken.py").write_text("import nothing_like_this", encoding="utf-8")
        python = Path(sys.executable)
        yield Fleet({"made_up": python, "broken": python}, files, "http://127.0.0.1:1/v1")


@pytest.fixture(scope="module")
def worker(fleet: Fleet) -> Iterator[Worker]:
    """One for all tests that let it live."""
    with fleet.started({"made up": "made_up"}, 7) as workers:
        yield workers["made up"]


def test_a_worker_lists_what_it_supports(worker: Worker) -> None:
    assert worker.has("right")
    assert not worker.has("streaming")
    assert worker.hello["absent"] == {"streaming": "It cannot."}
    assert set(worker.hello["versions"]) == {"pip"}
    with pytest.raises(WorkerError, match="says nothing about 'unheard-of'"):
        worker.has("unheard-of")


def test_a_worker_executes_all_kinds_of_tasks(worker: Worker) -> None:
    assert worker.ask("batch", workload="right", count=3) > 0
    assert worker.ask("batch_for", workload="right", seconds=0.01)["seconds"] > 0
    assert worker.ask("at_once", workload="right", size=5, count=2) > 0
    median, high = worker.ask("late", workload="right", size=5, seconds=0.05)
    assert 0 <= median <= high
    assert worker.ask("construct", workload="construct_0", count=2) > 0
    assert worker.ask("held", workload="held_0", count=20) == pytest.approx(100_000, rel=0.2)
    assert worker.ask("forget") is None


def test_runs_of_a_timed_batch_are_counted_with_the_warm_up(worker: Worker) -> None:
    # No other test runs this workload.
    first = worker.ask("batch_for", workload="counted", seconds=0.0)["runs"]
    second = worker.ask("batch_for", workload="counted", seconds=0.0)["runs"]
    assert (first, second) == (2, 4)


def test_a_wrong_answer_is_an_error_and_the_worker_continues(worker: Worker) -> None:
    with pytest.raises(WorkerError, match=r"made up has failed at batch wrong:(.|\n)*'rain', expected 'sun'"):
        worker.ask("batch", workload="wrong", count=1)
    with pytest.raises(WorkerError, match="there is no task 'dance'"):
        worker.ask("dance")
    assert worker.ask("batch", workload="right", count=1) > 0


def test_runs_whose_records_are_not_written_are_an_error(worker: Worker) -> None:
    with pytest.raises(WorkerError, match="what lost records was not written"):
        worker.ask("batch_for", workload="lost", seconds=0.0)


def test_a_run_that_does_not_wait_for_its_model_is_an_error(worker: Worker) -> None:
    with pytest.raises(WorkerError, match="0 of 3 runs reached their model"):
        worker.ask("held", workload="early", count=3)


def test_a_dead_worker_is_an_error_with_its_standard_error(fleet: Fleet) -> None:
    with fleet.started({"made up": "made_up"}, 7) as workers:
        worker = workers["made up"]
        with pytest.raises(WorkerError, match=r"has ended with 3 at batch dead:(.|\n)*last words"):
            worker.ask("batch", workload="dead", count=1)
        with pytest.raises(WorkerError, match="has ended"):
            worker.ask("batch", workload="right", count=1)


def test_a_worker_that_does_not_start_is_an_error_with_its_standard_error(fleet: Fleet) -> None:
    with pytest.raises(WorkerError, match="nothing_like_this"), fleet.started({"broken": "broken"}, 0):
        pass


def test_workers_are_stopped_when_the_caller_fails(fleet: Fleet) -> None:
    with pytest.raises(KeyboardInterrupt), fleet.started({"made up": "made_up"}, 0) as workers:
        raise KeyboardInterrupt
    assert workers["made up"].exit_code is not None


def test_no_key_and_no_proxy_reaches_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "HTTPS_PROXY", "LANGSMITH_TRACING", "PYTHONPATH"):
        monkeypatch.setenv(name, "x")
    environment = clean_environment(3)
    assert environment["PYTHONHASHSEED"] == "3"
    assert "x" not in environment.values()


def test_imports_come_from_the_environment_and_not_from_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "colorsys.py").write_text("raise RuntimeError('from the folder')", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert import_seconds("one", Path(sys.executable), "import colorsys") > 0
    with pytest.raises(WorkerError, match=r"one has failed at 'import nothing_like_this'"):
        import_seconds("one", Path(sys.executable), "import nothing_like_this")


def test_the_model_server_prints_its_address_and_ends_with_its_input() -> None:
    with model_server() as url:
        assert url.startswith("http://127.0.0.1:")
