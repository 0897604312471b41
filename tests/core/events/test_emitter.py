"""``Emitter``: several tasks that emit at the same time, and tasks that are cancelled while they emit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kantan_agents import Event
from kantan_agents.core.events import Emitter, OutputStored


async def until(happened: Callable[[], bool]) -> None:
    for _ in range(100):
        if happened():
            return
        await asyncio.sleep(0)
    raise AssertionError("it did not happen")


async def test_a_sender_does_not_wait_for_handlers_of_later_events() -> None:
    async def slow(_event: Event) -> None:
        await asyncio.sleep(0)

    emitter = Emitter("r", None, "a", (slow,))
    emitted: list[int] = []

    async def emit_many() -> None:
        for number in range(100):
            await emitter.emit(OutputStored, key="k")
            emitted.append(number)

    busy = asyncio.create_task(emit_many())
    await asyncio.sleep(0)
    await emitter.emit(OutputStored, key="once")
    assert len(emitted) < 50
    await busy


async def test_a_cancelled_task_does_not_interrupt_handlers_of_another_tasks_event() -> None:
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
async def test_the_event_of_an_end_reaches_every_handler_despite_repeated_cancellation(times: int) -> None:
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
