"""Under trio: what the error says to do works."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import anyio
import pytest

from kantan_agents import Agent
from kantan_agents.errors import EventLoopError
from kantan_agents.testing import ScriptedModel, assistant_message

trio: Any = import_module("trio")


def an_agent() -> Agent:
    return Agent("a", "b", model=ScriptedModel([[assistant_message("done")]]), tool_providers=None)


async def stream(input: str) -> None:
    async with an_agent().stream(input):
        pass


@pytest.mark.parametrize("start", [an_agent().run_async, stream])
@pytest.mark.parametrize("run", [trio.run, lambda *args: anyio.run(*args, backend="trio")])
def test_a_run_under_trio_is_an_error_that_names_asyncio(run: Any, start: Any) -> None:
    with pytest.raises(EventLoopError, match="needs asyncio, and this code runs on trio") as caught:
        run(start, "hi")
    assert "await trio.to_thread.run_sync(agent.run, input)" in str(caught.value)


@pytest.mark.parametrize("library", [trio, anyio])
def test_the_sync_run_works_in_a_thread_of_trio(library: Any) -> None:
    async def main() -> Any:
        return await library.to_thread.run_sync(an_agent().run, "hi")

    assert trio.run(main)["result"].final_output == "done"


def test_the_sync_run_works_in_a_task_of_trio_which_it_blocks() -> None:
    async def main() -> Any:
        return an_agent().run("hi")

    assert trio.run(main)["result"].final_output == "done"
