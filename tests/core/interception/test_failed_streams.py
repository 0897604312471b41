"""Streams that end with a failure instead of an answer."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from agents import ModelBehaviorError
from openai.types.responses import (
    Response,
    ResponseError,
    ResponseErrorEvent,
    ResponseFailedEvent,
    ResponseIncompleteEvent,
)
from openai.types.responses.response import IncompleteDetails

from kantan_agents import Agent, Event
from kantan_agents.core.events import ModelCallFinished
from kantan_agents.middleware import Fallback, Redact
from kantan_agents.testing import OfflineServer, Reply, ScriptedModel, assistant_message
from tests.core.events.event_checks import check_whole
from tests.core.events.watched_runs import Passes


def response(status: Any, **more: Any) -> Response:
    return Response(
        id="r",
        created_at=0,
        model="m",
        object="response",
        output=[],
        tool_choice="auto",
        tools=[],
        parallel_tool_calls=False,
        status=status,
        **more,
    )


FAILED = ResponseFailedEvent(
    type="response.failed",
    response=response("failed", error=ResponseError(code="server_error", message="overloaded")),
    sequence_number=0,
)
INCOMPLETE = ResponseIncompleteEvent(
    type="response.incomplete",
    response=response("incomplete", incomplete_details=IncompleteDetails(reason="content_filter")),
    sequence_number=0,
)
ERROR = ResponseErrorEvent(type="error", code="server_error", message="overloaded", sequence_number=0)

ENDS = pytest.mark.parametrize(
    ("end", "reason"),
    [
        (FAILED, "overloaded"),
        (INCOMPLETE, "content_filter"),
        (ERROR, "overloaded"),
        (None, "without an answer"),
    ],
    ids=["failed", "incomplete", "error", "nothing"],
)


class Failing(ScriptedModel):
    """Reports a failure and keeps the connection open."""

    def __init__(self, end: Any) -> None:
        super().__init__([])
        self._end = end

    async def stream_response(self, *_: Any, **__: Any) -> Any:
        if self._end is not None:
            yield self._end
            await asyncio.sleep(3600)


async def answer_of(agent: Agent, received: list[Event]) -> Any:
    async with agent.stream("Go") as run:
        async for event in run:
            received.append(event)
    return run.context["result"].final_output


@ENDS
@pytest.mark.parametrize("wrapped", [False, True])
async def test_the_call_fails_with_the_error_of_the_stream(end: Any, reason: str, wrapped: bool) -> None:
    received: list[Event] = []
    agent = Agent("a", "x", model=Failing(end), middleware=[Passes()] if wrapped else [])
    with pytest.raises(ModelBehaviorError, match=reason):
        await answer_of(agent, received)
    check_whole(received)
    assert [event.outcome for event in received if isinstance(event, ModelCallFinished)] == ["failed"]


@ENDS
@pytest.mark.parametrize("around", [[], [Redact()], [Passes()]])
async def test_another_model_may_answer(end: Any, reason: str, around: list[Any]) -> None:
    received: list[Event] = []
    spare = ScriptedModel([[assistant_message("From the spare.")]])
    agent = Agent("a", "x", model=Failing(end), middleware=[*around, Fallback(spare)])
    assert await answer_of(agent, received) == "From the spare."
    check_whole(received)


@pytest.mark.parametrize("wrapped", [False, True])
async def test_over_http_no_connection_remains_in_use(wrapped: bool) -> None:
    sent = f"event: {FAILED.type}\ndata: {json.dumps(FAILED.to_dict())}\n\n".encode()
    received: list[Event] = []
    with OfflineServer([Reply(body=sent, headers={"content-type": "text/event-stream"})]) as server:
        bundle = server.bundle()
        agent = Agent("a", "x", model=bundle, middleware=[Passes()] if wrapped else [])
        with pytest.raises(ModelBehaviorError, match=r"response\.failed.*overloaded"):
            await answer_of(agent, received)
        pool: Any = bundle.client._client._transport
        assert all(connection.is_idle() for connection in pool._pool.connections)
    check_whole(received)
