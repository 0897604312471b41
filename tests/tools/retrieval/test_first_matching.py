"""``first_matching`` lets other tasks run while it checks thousands of tools."""

from __future__ import annotations

import anyio

from kantan_agents.tools.retrieval.search import first_matching


async def test_the_first_matching_items_are_returned_in_order() -> None:
    assert await first_matching(lambda number: number % 3 == 0, range(1000), 3) == [0, 3, 6]
    assert await first_matching(lambda number: number > 997, range(1000), 5) == [998, 999]
    assert await first_matching(lambda _: True, [1, 2], 0) == []


async def test_other_tasks_run_during_a_long_check() -> None:
    been: list[str] = []

    async def other() -> None:
        been.append("here")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(other)
        (found,) = await first_matching(lambda _: bool(been), range(10_000), 1)
    assert 0 < found < 1000
