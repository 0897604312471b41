"""The check of call counts: counts are the same in any process, and growth is reported with its place."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import attrs
import pytest
from rich.console import Console

from benchmarks.call_counts import KEPT, check
from benchmarks.counting_calls import Counts, Workload, count, workloads
from benchmarks.kept_counts import OWN, Environment, Kept, changes, described, read, write
from benchmarks.overhead import FakeModel, pair
from kantan_agents import Next, Run
from tests.programs import Preloaded

HERE = Environment((3, 11), (0, 20))
BEFORE = Counts(
    own=100,
    all=1_000,
    plain=2_000,
    modules={"stages/call_sdk.py": 60, "agent.py": 40},
    packages={"agents": 700, "standard library": 200},
)
ANSWER = "It is sunny."
FOLDER = Path(__file__).resolve().parent

COUNT = f"""
import asyncio, json, attrs
from benchmarks.counting_calls import Workload, count
from benchmarks.overhead import FakeModel, make_tools, pair
workload = Workload(*pair(FakeModel({ANSWER!r}, calls_tool=True), make_tools(1)), {ANSWER!r}, "sunny in Oslo")
print(json.dumps(attrs.asdict(asyncio.run(count(workload)))))
"""


def checked(now: Counts, kept: Kept | None = None, here: Environment = HERE) -> tuple[bool, str]:
    console = Console(file=io.StringIO(), width=200, highlight=False, markup=False, soft_wrap=True)
    passed = check({HERE: {"tool turn": BEFORE}} if kept is None else kept, {"tool turn": now}, here, console)
    assert isinstance(console.file, io.StringIO)
    return passed, console.file.getvalue()


def needless() -> None:
    pass


async def patient(run: Run, call_next: Next) -> None:
    await call_next(run)


async def wasteful(run: Run, call_next: Next) -> None:
    for _ in range(1_000):
        needless()
    await call_next(run)


def test_the_same_counts_pass() -> None:
    passed, text = checked(BEFORE)
    assert passed
    assert "--update" not in text


@pytest.mark.parametrize(
    ("at_the_limit", "beyond", "figure"),
    [
        (attrs.evolve(BEFORE, own=105), attrs.evolve(BEFORE, own=106), "own calls"),
        (
            attrs.evolve(BEFORE, all=1_008, plain=1_920),
            attrs.evolve(BEFORE, all=1_009, plain=1_920),
            "all / plain SDK",
        ),
    ],
)
def test_five_percent_pass_and_one_call_more_fails(at_the_limit: Counts, beyond: Counts, figure: str) -> None:
    passed, text = checked(at_the_limit)
    assert passed, text
    passed, text = checked(beyond)
    assert not passed
    assert f"tool turn: {figure} grew by " in text
    assert text.count(" grew by ") == 1


def test_the_plain_sdk_may_grow_and_all_calls_with_it() -> None:
    assert checked(attrs.evolve(BEFORE, plain=4_000))[0]
    assert checked(attrs.evolve(BEFORE, all=2_000, plain=4_000))[0]


def test_the_place_of_the_growth_is_reported() -> None:
    now = attrs.evolve(
        BEFORE,
        own=170,
        modules={"stages/call_sdk.py": 130, "agent.py": 40},
        functions={"stages/call_sdk.py": {"call_sdk": 30, "_asked": 100}},
    )
    passed, text = checked(now)
    assert not passed
    where = "most in stages/call_sdk.py 60 -> 130 (now _asked 100, call_sdk 30)\n"
    assert f"tool turn: own calls grew by 70.0 %, {where}" in text


def test_growth_outside_the_package_is_reported_with_that_of_the_plain_sdk() -> None:
    packages = {"agents": 700, "standard library": 300, "pydantic": 20}
    passed, text = checked(attrs.evolve(BEFORE, all=1_120, plain=2_020, packages=packages))
    assert not passed
    where = "most in standard library 200 -> 300; pydantic 0 -> 20\n"
    assert f"all / plain SDK grew by 10.9 % (calls of the plain SDK: +1.0 %), {where}" in text


def test_saved_calls_pass_with_a_hint() -> None:
    passed, text = checked(attrs.evolve(BEFORE, own=94))
    assert passed
    assert "saved: run with --update" in text


def test_another_python_is_compared_with_the_nearest_by_own_calls() -> None:
    far = Environment((3, 10), (0, 20))
    kept = {far: {"tool turn": attrs.evolve(BEFORE, own=1)}, HERE: {"tool turn": BEFORE}}
    here = Environment((3, 13), (0, 24))
    passed, text = checked(attrs.evolve(BEFORE, own=105, all=9_000), kept, here)
    assert passed, text
    expected = (
        "Python 3.13, openai-agents 0.24. Only own calls are compared, with those of Python 3.11, openai"
    )
    assert expected in text
    assert "all calls" not in text
    passed, text = checked(attrs.evolve(BEFORE, own=106), kept, here)
    assert not passed
    assert "tool turn: own calls grew by 6.0 %" in text


@pytest.mark.parametrize("kept", [{}, {HERE: {"one turn": BEFORE}}])
def test_a_check_without_comparable_counts_fails(kept: Kept) -> None:
    passed, text = checked(BEFORE, kept)
    assert not passed
    assert "othing can be compared" in text


def test_workloads_that_are_not_compared_are_listed() -> None:
    passed, text = checked(BEFORE, {HERE: {"tool turn": BEFORE, "one turn": BEFORE}})
    assert passed
    assert "one turn: not compared, no numbers are counted now." in text


def test_written_counts_are_read_again(tmp_path: Path) -> None:
    kept = {HERE: {"tool turn": BEFORE}, Environment((3, 9), (1, 0)): {"one turn": BEFORE}}
    write(tmp_path / "kept.json", kept)
    assert read(tmp_path / "kept.json") == kept
    assert read(tmp_path / "none.json") == {}


def test_the_stored_counts_are_complete_and_cover_the_versions_in_ci() -> None:
    kept = read(KEPT)
    assert HERE in kept
    for of_one in kept.values():
        assert list(of_one) == list(workloads())
        for counts in of_one.values():
            assert counts.own == sum(counts.modules.values())
            assert counts.all == counts.own + sum(counts.packages.values())


def test_a_new_and_a_forked_process_count_the_same(preloaded: Preloaded) -> None:
    """They have different hash seeds, and the forked one has imported more."""
    environment = {**os.environ, "PYTHONPATH": str(FOLDER.parents[1])}
    of_session = environment.pop("PYTHONHASHSEED", "random")
    new = subprocess.run(
        [sys.executable, "-c", COUNT],
        env=environment | {"PYTHONHASHSEED": "2" if of_session == "1" else "1"},
        check=True,
        stdout=subprocess.PIPE,
    )
    forked = preloaded.run(["-c", COUNT], env=environment)
    one, other = (Counts(**json.loads(printed)) for printed in (new.stdout, forked.stdout))
    compared = list(changes({"tool turn": one}, {"tool turn": other}))
    assert len(compared) == 4
    for change in compared:
        assert abs(change.growth) < 0.005, change


async def test_needless_calls_of_the_package_are_noticed() -> None:
    model = FakeModel(ANSWER)
    kept, now = [
        await count(Workload(*pair(model, middleware=[middleware]), ANSWER), FOLDER)
        for middleware in (patient, wasteful)
    ]
    assert now.own == kept.own + 1_000
    assert now.all == kept.all + 1_000
    assert now.plain == kept.plain
    change = next(changes({"one turn": kept}, {"one turn": now}, [OWN]))
    assert described(change, kept, now).startswith("one turn: own calls grew by ")
    assert f"{Path(__file__).name} {kept.own} -> {now.own} (now needless 1000" in described(change, kept, now)


async def test_a_run_that_answers_something_else_is_not_counted() -> None:
    model = FakeModel("It rains.")
    with pytest.raises(RuntimeError, match=r"'It rains\.'"):
        await count(Workload(*pair(model), ANSWER))


async def test_a_run_whose_tool_is_not_called_is_not_counted() -> None:
    with pytest.raises(RuntimeError, match=r"its tools \[\]"):
        await count(Workload(*pair(FakeModel(ANSWER)), ANSWER, "sunny in Oslo"))


async def test_a_run_that_grows_is_not_counted() -> None:
    rounds = iter(range(100))

    async def growing(run: Run, call_next: Next) -> None:
        for _ in range(next(rounds)):
            needless()
        await call_next(run)

    with pytest.raises(RuntimeError, match=r"different calls, in test_call_counts\.py:.*needless"):
        await count(Workload(*pair(FakeModel(ANSWER), middleware=[growing]), ANSWER))
