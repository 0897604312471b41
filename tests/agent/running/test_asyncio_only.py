"""A run needs asyncio; without it, the error says so. ``tests/real_parts/test_trio.py`` runs under trio."""

from __future__ import annotations

from typing import Any

import pytest

from kantan_agents import Agent
from kantan_agents.errors import EventLoopError
from kantan_agents.testing import ScriptedModel


async def stream(agent: Agent) -> None:
    async with agent.stream("hi"):
        pass


@pytest.mark.parametrize("start", [lambda agent: agent.run_async("hi"), stream])
def test_a_run_that_no_event_loop_drives_names_asyncio_and_does_nothing_else(start: Any) -> None:
    seen: list[Any] = []
    model = ScriptedModel([])

    def metadata(context: Any) -> dict[str, Any]:
        seen.append(context)
        return {}

    agent = Agent("a", "b", model=model, metadata=metadata)
    agent.subscribe(seen.append)
    with pytest.raises(EventLoopError) as caught:
        start(agent).send(None)
    assert isinstance(caught.value, RuntimeError)
    message = str(caught.value)
    assert message.startswith(
        "[kantan-agents][E68] An agent needs asyncio, and no event loop is running here. "
    )
    assert "await anyio.to_thread.run_sync(agent.run, input)" in message
    assert (seen, model.calls) == ([], ())
