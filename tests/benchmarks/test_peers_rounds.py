"""Sides and workers take turns. Costs are made up here, not timed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.peers.catalog import BY_ID
from benchmarks.peers.compared import CONTROL, OURS, PLAIN
from benchmarks.peers.fleet import WorkerError
from benchmarks.peers.measuring import Bench
from benchmarks.peers.rounds import Pair, Spread, others, ratios, take_turns
from benchmarks.peers.sizes import Sizes
from benchmarks.peers.trace_databases import TraceDatabases

SIZES = Sizes(
    generations=2,
    pairs=3,
    long_pairs=1,
    batch_seconds=0.05,
    longest_seconds=0.08,
    traced_seconds=0.1,
    late_seconds=0.1,
)
COSTS = {PLAIN: 0.01, OURS: 0.005, "slow": 0.04}


class FakeWorker:
    """A worker with given costs that records the order of all tasks."""

    def __init__(self, name: str, cost: float, asked: list[tuple[str, str, int]]) -> None:
        self.name = name
        self.cost = cost
        self.asked = asked
        self.hello = {"versions": {"package": "1.0"}, "absent": {"streaming": "It cannot."}}

    def has(self, entry: str) -> bool:
        return self.name != "slow" or entry != "streaming"

    def ask(self, do: str, **task: Any) -> Any:
        if do == "late":
            return [self.cost, 2 * self.cost]
        if do == "forget":
            return None
        self.asked.append((self.name, do, task["count"]))
        return self.cost


class FakeFleet:
    def __init__(self) -> None:
        self.asked: list[tuple[str, str, int]] = []
        self.generations: list[int] = []

    @contextmanager
    def started(self, names: Mapping[str, str], generation: int) -> Iterator[dict[str, FakeWorker]]:
        self.generations.append(generation)
        yield {key: FakeWorker(key, COSTS[name], self.asked) for key, name in names.items()}


def measured(*workloads: str) -> tuple[Bench, FakeFleet]:
    fleet: Any = FakeFleet()
    bench = Bench(fleet, SIZES, (PLAIN, OURS, "slow"), TraceDatabases(Path()))
    bench.measure([BY_ID[name] for name in workloads], lambda _: None)
    return bench, fleet


def test_sides_take_turns_and_the_first_one_alternates() -> None:
    order: list[str] = []

    def side(name: str, cost: float) -> float:
        order.append(name)
        return cost

    pairs = take_turns(lambda: side("a", 1.0), lambda: side("b", 3.0), 3)
    assert "".join(order) == "abbaab"
    assert pairs == [Pair(1.0, 3.0)] * 3


def test_a_ratio_is_the_median_of_neighbours_not_the_ratio_of_medians() -> None:
    # The machine gets ten times slower after the first pair.
    pairs = [Pair(1.0, 2.0), Pair(10.0, 20.0), Pair(10.0, 30.0)]
    assert ratios(pairs).median == 2.0
    assert others(pairs).median == 20.0


def test_quartiles_are_computed_from_the_figures_themselves() -> None:
    assert Spread.of([5.0, 1.0, 3.0, 2.0, 4.0]) == Spread(2.0, 3.0, 4.0)
    assert Spread.of([7.0]) == Spread(7.0, 7.0, 7.0)


def test_all_generations_count_and_the_control_is_the_plain_sdk() -> None:
    bench, fleet = measured("one_turn")
    figures = bench.figures["one_turn"]
    assert fleet.generations == [0, 1]
    assert {name: len(of_one.pairs) for name, of_one in figures.items()} == {OURS: 6, "slow": 6, CONTROL: 6}
    assert ratios(figures[OURS].pairs).median == pytest.approx(0.5)
    assert ratios(figures["slow"].pairs).median == pytest.approx(4.0)
    assert ratios(figures[CONTROL].pairs).median == pytest.approx(1.0)


def test_both_sides_make_as_many_runs_as_fill_a_batch_of_the_plain_sdk() -> None:
    _, fleet = measured("one_turn")
    turns = [(name, count) for name, _, count in fleet.asked]
    assert turns.count((OURS, 5)) == 2 * (1 + SIZES.pairs)
    assert (PLAIN, 5) in turns


def test_both_sides_make_fewer_runs_if_the_other_one_is_slow() -> None:
    _, fleet = measured("one_turn")
    turns = [(name, count) for name, _, count in fleet.asked]
    assert {count for name, count in turns if name == "slow"} == {1, 2}
    assert turns.count((PLAIN, 2)) == turns.count(("slow", 2)) - 2  # which has warmed up in both generations


def test_concurrent_runs_are_counted_and_the_lag_of_the_loop_is_measured() -> None:
    bench, fleet = measured("at_once_50")
    # 50 runs of 10 ms are a batch already.
    assert {(do, count) for _, do, count in fleet.asked} == {("at_once", 1)}
    # They take longer than a batch may, so there are few of them.
    assert len(bench.figures["at_once_50"][OURS].pairs) == SIZES.generations * SIZES.long_pairs
    assert bench.figures["at_once_50"]["slow"].late == [(0.04, 0.08)] * 2
    assert bench.figures["at_once_50"][PLAIN].late == [(0.01, 0.02)] * 2
    assert bench.figures["at_once_50"][CONTROL].late == [(0.01, 0.02)] * 2


def test_a_framework_without_a_counterpart_is_skipped_with_its_reason() -> None:
    bench, fleet = measured("streaming")
    assert bench.figures["streaming"]["slow"].absent == "It cannot."
    assert "slow" not in {name for name, *_ in fleet.asked}


def test_memory_is_counted_once() -> None:
    bench, fleet = measured("held_0")
    assert sorted(name for name, *_ in fleet.asked) == sorted([PLAIN, OURS, "slow"])
    assert bench.figures["held_0"][OURS].pairs == [Pair(0.01, 0.005)]


class Failing(FakeFleet):
    """A worker of which one workload fails in one generation, after some figures."""

    def __init__(self, workload: str, generation: int) -> None:
        super().__init__()
        self.failing = (workload, generation)

    @contextmanager
    def started(self, names: Mapping[str, str], generation: int) -> Iterator[dict[str, FakeWorker]]:
        with super().started(names, generation) as workers:

            def ask(do: str, **task: Any) -> Any:
                if (task.get("workload"), generation) == self.failing:
                    raise WorkerError("slow has ended with -9")
                return FakeWorker.ask(workers["slow"], do, **task)

            workers["slow"].ask = ask  # type: ignore[method-assign]
            yield workers


@pytest.mark.parametrize("generation", [0, 1])
def test_a_failed_workload_is_left_out_and_the_others_continue_in_new_processes(generation: int) -> None:
    fleet: Any = Failing("tool_turn", generation)
    bench = Bench(fleet, SIZES, (PLAIN, OURS, "slow"), TraceDatabases(Path()))
    said: list[str] = []
    bench.measure([BY_ID[name] for name in ("one_turn", "tool_turn", "structured")], said.append)
    assert bench.failed == {"tool_turn": "slow has ended with -9"}
    assert {*bench.figures} == {"one_turn", "structured"}
    assert {len(of_one.pairs) for row in bench.figures.values() for of_one in row.values()} == {6}
    assert fleet.generations == sorted([0, 1, generation])
    assert "  FAILED tool_turn: slow has ended with -9" in said
