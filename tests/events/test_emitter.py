"""Whose turn it is: several tasks that tell at once, and those that are cancelled meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kantan_agents.events import Event, OutputStored
from kantan_agents.events.emitter import Emitter

pytestmark = pytest.mark.anyio


async def until(happened: Callable[[], bool]) -> None:
    for _ in range(100):
        if happened():
            return
        await asyncio.sleep(0)
    raise AssertionError("it did not happen")


async def test_who_waits_for_the_observers_does_not_wait_for_those_who_come_later() -> None:
    async def slow(_event: Event) -> None:
        await asyncio.sleep(0)

    emitter = Emitter("r", None, "a", (slow,))
    told: list[int] = []

    async def tell_much() -> None:
        for number in range(100):
            await emitter.emit(OutputStored, key="k")
            told.append(number)

    busy = asyncio.create_task(tell_much())
    await asyncio.sleep(0)
    await emitter.emit(OutputStored, key="once")
    assert len(told) < 50
    await busy


async def test_a_cancelled_task_interrupts_no_handler_of_what_another_tells() -> None:
    begun: list[str] = []
    ended: list[str] = []
    free = asyncio.Event()

    async def slow(event: Event) -> None:
        assert isinstance(event, OutputStored)
        begun.append(event.key)
        if event.key == "first":
            await free.wait()
        for _ in range(5):
            await asyncio.sleep(0)
        ended.append(event.key)

    emitter = Emitter("r", None, "a", (slow,))
    first = asyncio.create_task(emitter.emit(OutputStored, key="first"))
    await asyncio.sleep(0)
    second = asyncio.create_task(emitter.emit_end(OutputStored, key="second"))
    await asyncio.sleep(0)
    free.set()
    await until(lambda: "second" in begun)
    first.cancel()
    await asyncio.wait([first, second])
    assert ended == ["first", "second"]
    assert not second.cancelled()


@pytest.mark.parametrize("times", [1, 2, 3])
async def test_how_something_ended_reaches_each_handler_however_often_it_is_cancelled(times: int) -> None:
    begun: list[int] = []

    def handler(number: int) -> Any:
        async def wait(_event: Event) -> None:
            begun.append(number)
            for _ in range(5):
                await asyncio.sleep(0)

        return wait

    emitter = Emitter("r", None, "a", tuple(handler(number) for number in range(4)))
    task = asyncio.create_task(emitter.emit_end(OutputStored, key="k"))
    for number in range(times):
        await until(lambda: number in begun)  # noqa: B023 - awaited at once
        task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert begun == [0, 1, 2, 3]
