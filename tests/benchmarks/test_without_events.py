"""The benchmark of events compares with runs that tell nothing; they do, and all is as before afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.middleware import one_turn, without_events

pytestmark = pytest.mark.anyio


async def test_a_run_tells_nothing_while_events_are_taken_out() -> None:
    agent, run = one_turn()
    told: list[Any] = []
    with agent.subscribe(told.append):
        with without_events():
            await run()
        assert not told
        await run()
    assert told
