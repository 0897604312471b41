"""The server of a real model is killed in the middle of an answer, and starts again."""

from __future__ import annotations

from typing import Any

import anyio
import httpx
import openai
import pytest
from anyio.to_thread import run_sync

from kantan_agents.core.events import RetryScheduled
from kantan_agents.middleware import Retry
from tests.real_model.language_model import ModelServer
from tests.real_model.recorded_agents import RecordedAgents, ask, settings

LONG = settings(max_tokens=120)


async def test_retry_waits_until_the_server_is_back(recorded: RecordedAgents) -> None:
    with ModelServer() as server:
        retry = Retry(attempts=100, initial_delay=0.2, max_delay=0.5)
        agent = recorded.agent("patient", model=server.bundle(), model_settings=LONG, middleware=[retry])
        lost = anyio.Event()

        def notice(event: Any) -> None:
            if isinstance(event, RetryScheduled):
                lost.set()

        answers: list[Any] = []

        async def run() -> None:
            answers.append(await ask(agent, "Tell me a story."))

        with agent.subscribe(notice):
            async with anyio.create_task_group() as group:
                group.start_soon(run)
                await run_sync(server.wait_until_it_writes)
                await run_sync(server.kill)
                await lost.wait()
                await run_sync(server.start)
        (answer,) = answers
        assert answer.output.strip()
        assert answer.usage["requests"] - 1 == sum(
            isinstance(event, RetryScheduled) for event in answer.events
        )
        recorded.flush()
        (trace,) = recorded.store.traces()
        assert trace.status == "recovered"


async def test_a_stream_of_which_text_has_arrived_ends_with_the_connection(recorded: RecordedAgents) -> None:
    recorded.unreplayable = 1
    with ModelServer() as server:
        agent = recorded.agent("reader", model=server.bundle(), model_settings=LONG, middleware=[Retry()])
        with pytest.raises((openai.APIConnectionError, httpx.TransportError)):
            async with agent.stream("Tell me a story.") as run:
                async for event in run:
                    if event.type == "text_delta":
                        await run_sync(server.kill)
