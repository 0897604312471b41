"""``Run.at_end``: what a tool has left open is closed when the run is over."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from kantan_agents import Agent, Run
from kantan_agents.core.pipeline import current_run
from kantan_agents.testing import ScriptedModel, assistant_message, function_call


def opening(closers: list[Any], *steps: Any) -> Agent:
    """Return an agent whose tool leaves things open."""

    def open_things() -> str:
        run = current_run.get()
        assert run is not None
        for close in closers:
            run.at_end(close(run))
        return "open"

    first = [function_call("open_things", {}, call_id="1")]
    return Agent("a", "x", model=ScriptedModel([first, *steps]), tools=[open_things])


def noting(seen: list[Any], name: str) -> Any:
    def of(run: Run) -> Any:
        async def close() -> None:
            await asyncio.sleep(0)
            seen.append((name, run.outcome))

        return close

    return of


async def test_what_was_registered_last_is_closed_first_when_the_outcome_is_known() -> None:
    seen: list[Any] = []
    agent = opening([noting(seen, "first"), noting(seen, "second")], [assistant_message("Done.")])
    await agent.run_async("Go")
    assert seen == [("second", "finished"), ("first", "finished")]


async def test_a_stream_closes_too() -> None:
    seen: list[Any] = []
    agent = opening([noting(seen, "it")], [assistant_message("Done.")])
    async with agent.stream("Go") as run:
        async for _ in run:
            pass
    assert seen == [("it", "finished")]


async def test_a_failed_run_closes_what_it_has_opened() -> None:
    seen: list[Any] = []
    with pytest.raises(RuntimeError):
        await opening([noting(seen, "it")], RuntimeError("no answer")).run_async("Go")
    assert seen == [("it", "failed")]


async def test_a_cancellation_does_not_interrupt_the_closing() -> None:
    begun, release = asyncio.Event(), asyncio.Event()
    seen: list[Any] = []

    def slow(_run: Run) -> Any:
        async def close() -> None:
            begun.set()
            await release.wait()
            seen.append("closed")

        return close

    task = asyncio.create_task(opening([slow], [assistant_message("Done.")]).run_async("Go"))
    await begun.wait()
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["closed"]


async def test_an_error_while_closing_is_logged_and_the_others_are_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[Any] = []

    def broken(_run: Run) -> Any:
        async def close() -> None:
            raise OSError("no")

        return close

    agent = opening([noting(seen, "it"), broken], [assistant_message("Done.")])
    with caplog.at_level(logging.WARNING, "kantan_agents"):
        context = await agent.run_async("Go")
    assert context["result"].final_output == "Done."
    assert seen == [("it", "finished")]
    assert "cannot be closed" in caplog.text
