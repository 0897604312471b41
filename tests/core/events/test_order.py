"""Every start has exactly one end, in nested order, after any failure and any cancellation."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
from hypothesis import example, given
from hypothesis import strategies as st

from kantan_agents import Event
from tests.core.events.event_checks import check_whole
from tests.core.events.watched_runs import RULES, Script, built, scripts


class Watching:
    """Two observers that must receive the same events, and an action after the n-th event."""

    def __init__(self, after: int | None = None) -> None:
        self.sync: list[Event] = []
        self.awaited: list[Event] = []
        self.after = after
        self.act: Any = None

    def receive(self, event: Event) -> None:
        self.sync.append(event)
        if len(self.sync) == self.after and self.act is not None:
            self.act()

    async def await_it(self, event: Event) -> None:
        self.awaited.append(event)
        await asyncio.sleep(0)

    def fail(self, event: Event) -> None:
        raise RuntimeError("an observer that fails")


async def run_watched(script: Script, watching: Watching) -> None:
    agent = built(script)
    with (
        agent.subscribe(watching.fail),
        agent.subscribe(watching.receive),
        agent.subscribe(watching.await_it),
    ):
        task = asyncio.create_task(agent.run_async("hi", {"tool_rules": RULES}))
        watching.act = task.cancel
        await asyncio.wait([task])
    if not task.cancelled():
        task.exception()


async def nothing_left() -> bool:
    # Tasks that the SDK has cancelled need a moment to end.
    for _ in range(5):
        await asyncio.sleep(0)
    return asyncio.all_tasks() == {asyncio.current_task()}


@given(scripts)
def test_every_start_has_exactly_one_end(script: Script) -> None:
    async def main() -> None:
        watching = Watching()
        await run_watched(script, watching)
        assert await nothing_left()
        check_whole(watching.sync)
        assert watching.sync == watching.awaited

    anyio.run(main)


@given(scripts, st.integers(1, 60))
@example(Script([["ok", "ok", "nested"]], [], [], hands_over=False, output_dest=False), 14)
def test_every_start_has_exactly_one_end_if_the_run_is_cancelled_after_any_event(
    script: Script, after: int
) -> None:
    async def main() -> None:
        watching = Watching(after)
        await run_watched(script, watching)
        received = len(watching.sync)
        assert await nothing_left()
        assert len(watching.sync) == received
        check_whole(watching.sync)
        assert watching.sync == watching.awaited

    anyio.run(main)


@given(scripts, st.integers(1, 60))
def test_every_start_has_exactly_one_end_if_a_stream_is_left_after_any_event(
    script: Script, after: int
) -> None:
    async def main() -> None:
        watching = Watching()
        agent = built(script)
        read: list[Event] = []
        with agent.subscribe(watching.receive):
            try:
                async with agent.stream("hi", {"tool_rules": RULES}) as run:
                    async for event in run:
                        read.append(event)
                        if len(read) == after:
                            break
            except Exception:  # noqa: BLE001 - the error with which the script ends
                assert len(read) < after
        assert await nothing_left()
        check_whole(watching.sync)
        visible = [event for event in watching.sync if not event.internal]
        assert read == visible[: len(read)]
        assert len(read) in (after, len(visible))

    anyio.run(main)
