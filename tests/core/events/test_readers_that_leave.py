"""A run does not wait between two turns for a reader that reads no more."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import anyio
import pytest

from kantan_agents import Agent
from kantan_agents.testing import ScriptedModel, assistant_message, function_call

Reader: TypeAlias = Callable[[Any], Awaitable[Any]]
CALL = function_call("step", {}, call_id="c")


def step() -> str:
    """Take a step."""
    return "taken"


def built(*turns: list[Any]) -> Agent[Any]:
    return Agent("a", "x", model=ScriptedModel([*turns, [assistant_message("Done.")]]), tools=[step])


async def over_without_leaving(agent: Agent[Any], read: Reader) -> Any:
    """Let a reader read some of a run, and wait for the end of the run inside of the block."""
    over: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def notice(event: Any) -> None:
        if event.type == "run_finished":
            over.set_result(event.output)

    with agent.subscribe(notice), anyio.fail_after(60):
        async with agent.stream("Go") as run:
            kept = await read(run)  # what the reader returns lives until the run is over
            output = await over
            del kept
            return output


async def breaks(run: Any) -> None:
    async for _ in run:
        break


async def returns(run: Any) -> None:
    async for _ in run:
        return


async def fails(run: Any) -> None:
    with pytest.raises(LookupError):
        async for _ in run:
            raise LookupError


async def breaks_from_the_text(run: Any) -> None:
    async for _ in run.text_deltas():
        break


async def drops_the_text(run: Any) -> None:
    pieces = run.text_deltas()
    await anext(pieces)
    del pieces
    gc.collect()


async def is_cancelled_in_a_task(run: Any) -> asyncio.Task[None]:
    begun = asyncio.Event()

    async def read() -> None:
        async for _ in run:
            begun.set()
            await asyncio.sleep(3600)

    task = asyncio.create_task(read())
    await begun.wait()
    task.cancel()
    await asyncio.wait([task])
    return task


LEFT = [breaks, returns, fails, is_cancelled_in_a_task]


@pytest.mark.parametrize("read", LEFT, ids=lambda read: read.__name__)
@pytest.mark.parametrize("turns", [1, 3])
async def test_a_reader_that_leaves_the_loop_does_not_hold_up_the_run(turns: int, read: Reader) -> None:
    assert await over_without_leaving(built(*[[CALL]] * (turns - 1)), read) == "Done."


@pytest.mark.parametrize("read", [breaks_from_the_text, drops_the_text], ids=lambda read: read.__name__)
async def test_a_reader_that_leaves_the_text_does_not_hold_up_the_run(read: Reader) -> None:
    agent = built([assistant_message("I take a step."), CALL], [CALL])
    assert await over_without_leaving(agent, read) == "Done."


async def test_the_last_turn_waits_for_no_reader_because_no_turn_follows() -> None:
    async def keeps_the_iterator(run: Any) -> Any:
        events = aiter(run)
        await anext(events)
        return events

    assert await over_without_leaving(built(), keeps_the_iterator) == "Done."


async def test_a_run_that_is_to_stop_after_its_turn_waits_for_no_reader() -> None:
    async def stops(run: Any) -> Any:
        events = aiter(run)
        while (await anext(events)).type != "tool_call_finished":
            pass
        for _ in range(100):  # until the run waits for this reader
            await asyncio.sleep(0)
        run.cancel(mode="after_turn")
        return events

    assert await over_without_leaving(built([CALL]), stops) is None
