"""A look at thousands of tools does not keep everybody else waiting."""

from __future__ import annotations

import anyio
import pytest

from kantan_agents.retrieval.in_turns import first_that

pytestmark = pytest.mark.anyio


async def test_the_first_that_fit_are_found_in_their_order() -> None:
    assert await first_that(lambda number: number % 3 == 0, range(1000), 3) == [0, 3, 6]
    assert await first_that(lambda number: number > 997, range(1000), 5) == [998, 999]
    assert await first_that(lambda _: True, [1, 2], 0) == []


async def test_others_have_their_turn_during_a_long_look() -> None:
    been: list[str] = []

    async def other() -> None:
        been.append("here")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(other)
        (found,) = await first_that(lambda _: bool(been), range(10_000), 1)
    assert 0 < found < 1000
