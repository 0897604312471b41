"""The work of an experiment: what is done alone, what waits for the budget, and what stops it."""

from __future__ import annotations

import anyio

from kantan_agents.lab.experiment.spending import Spending
from kantan_agents.lab.experiment.work import Work

KIND = "run"


class UsedUpError(Exception):
    pass


class Runs:
    """Units that use 10 tokens each, after what they wait for."""

    def __init__(self, limit: int | None = None) -> None:
        self.spending = Spending({"tokens": limit})
        self.work = Work(self.spending)
        self.done: list[int] = []
        self.running = 0
        self.most: list[int] = []

    async def __call__(self, unit: int) -> None:
        async with self.work.paid(lambda: self.spending.estimate([KIND]), UsedUpError) as may_run:
            if not may_run:
                return
            self.running += 1
            self.most.append(self.running)
            await anyio.sleep(0.01)
            self.running -= 1
            self.spending.count(10, None, KIND)
            self.done.append(unit)

    async def do(self, count: int, workers: int = 4) -> None:
        await self.work.do(range(count), self, workers, lambda _: self.spending.knows([KIND]))


async def test_without_a_budget_nothing_is_done_alone() -> None:
    runs = Runs()
    await runs.do(8)
    assert (sorted(runs.done), runs.work.stopped) == ([*range(8)], None)
    assert max(runs.most) == 4


async def test_with_a_budget_the_first_of_a_kind_is_done_alone() -> None:
    runs = Runs(limit=1_000)
    await runs.do(8)
    assert runs.done[0] == 0
    assert runs.most[:2] == [1, 1], "the second begins when the first has ended"
    assert max(runs.most) == 4


async def test_a_unit_waits_for_those_that_may_use_less_than_is_reserved_for_them() -> None:
    runs = Runs(limit=80)
    runs.spending.learn(KIND, {"tokens": 40, "cost": None})
    await runs.do(6)
    assert max(runs.most) == 2, "40 tokens are reserved for each"
    assert (len(runs.done), runs.spending.tokens) == (5, 50), "then 40 do not fit any more"
    assert isinstance(runs.work.stopped, UsedUpError)


async def test_the_first_error_stops_it_and_no_more_units_begin() -> None:
    work, done = Work(Spending({})), []

    async def one(unit: int) -> None:
        done.append(unit)
        if unit == 2:
            work.stop(ValueError("first"))
            work.stop(ValueError("second"))

    await work.do(range(6), one, 1)
    assert done == [0, 1, 2]
    assert str(work.stopped) == "first"
