"""Which tasks a run knows as those that are making its calls, so that it can wait for them if it fails."""

from __future__ import annotations

import asyncio

from kantan_agents import Agent, Run
from kantan_agents.core.interception import track_call, tracked_calls
from kantan_agents.testing import ScriptedModel


def a_run() -> Run:
    return Run(Agent("a", "x", model=ScriptedModel(["Done."])), "Go", {}, "r")


async def make_call(run: Run, end: asyncio.Event) -> None:
    track_call(run)
    await end.wait()


async def test_open_calls_are_known_however_many_there_are() -> None:
    run, end = a_run(), asyncio.Event()
    with tracked_calls(run) as known:
        made = [asyncio.create_task(make_call(run, end)) for _ in range(300)]
        await asyncio.sleep(0)
        assert known == {*made}
        end.set()
        await asyncio.gather(*made)


async def test_calls_that_have_ended_are_forgotten() -> None:
    run, end, open_end = a_run(), asyncio.Event(), asyncio.Event()
    end.set()
    with tracked_calls(run) as known:
        still_open = asyncio.create_task(make_call(run, open_end))
        for _ in range(1_000):
            await asyncio.create_task(make_call(run, end))
        assert still_open in known
        assert len(known) < 100
        open_end.set()
        await still_open


async def test_the_runs_own_task_is_not_among_them() -> None:
    run = a_run()
    with tracked_calls(run) as known:
        track_call(run)
        assert not known
    track_call(run)
    assert not known
