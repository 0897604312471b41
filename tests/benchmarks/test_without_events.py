"""``without_events``, a baseline of the events benchmark, turns events off and restores them afterwards."""

from __future__ import annotations

from typing import Any

from benchmarks.middleware import one_turn, without_events


async def test_a_run_emits_nothing_while_events_are_removed() -> None:
    agent, run = one_turn()
    observed: list[Any] = []
    with agent.subscribe(observed.append):
        with without_events():
            await run()
        assert not observed
        await run()
    assert observed
