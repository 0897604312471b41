"""A model server that counts the replies it is still sending, and can pause them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from kantan_agents.testing import OfflineServer, RecordedRequest, ReplyLike, ScriptedToolCall

NEVER = None


class WatchedServer(OfflineServer):
    """Counts unfinished replies, and pauses some of them until their client disconnects.

    Args:
        reply: As for ``OfflineServer``.
        holds: Returns the number of chunks after which the reply to a request is paused, or ``NEVER``.

    Attributes:
        under_way: Number of requests whose reply is not finished.
        sent: Number of chunks sent, over all requests.
    """

    def __init__(
        self,
        reply: Callable[[RecordedRequest], ReplyLike],
        holds: Callable[[RecordedRequest], int | None] = lambda _: NEVER,
    ) -> None:
        super().__init__(reply)
        self._holds = holds
        self.under_way = 0
        self.sent = 0

    async def _handle(self, request: Request) -> Response:
        hold = self._holds(RecordedRequest(request.url.path, await request.json(), {}))
        return _Watched(self, await super()._handle(request), hold)


class _Watched(Response):
    def __init__(self, server: WatchedServer, answer: Response, hold: int | None) -> None:
        super().__init__()
        self._server = server
        self._answer = answer
        self._hold = hold

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        pieces = 0

        async def counted(message: Any) -> None:
            nonlocal pieces
            while pieces == self._hold and (await receive())["type"] != "http.disconnect":
                continue
            await send(message)
            pieces += 1
            self._server.sent += 1

        self._server.under_way += 1
        try:
            await self._answer(scope, receive, counted)
        finally:
            self._server.under_way -= 1


def customer_of(request: RecordedRequest) -> str:
    """Return the customer, whose name is in the instructions of the page's agent."""
    return str(request.body["instructions"]).split()[1]


def order_then_answer(request: RecordedRequest) -> ReplyLike:
    """Call the page's tool, then answer at some length with its result."""
    last = request.body["input"][-1]
    if last.get("type") != "function_call_output":
        return ScriptedToolCall("list_orders", {}, id=f"call_{customer_of(request)}")
    return answer_for(customer_of(request), last["output"])


def answer_for(customer: str, orders: str) -> str:
    """Return the model's answer: about 30 chunks, all specific to the customer."""
    return f"{customer}: {orders} " + " ".join(f"{customer}-{number:02}" for number in range(30))


def is_last_turn(request: RecordedRequest) -> bool:
    """Whether the tool has already been called."""
    return "function_call_output" in json.dumps(request.body["input"])
