"""A model server that knows which of its answers are under way, and can keep them there."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from kantan_agents.testing import OfflineServer, RecordedRequest, ScriptedToolCall
from kantan_agents.testing.wire import ReplyLike

NEVER = None


class WatchedServer(OfflineServer):
    """Counts what is under way.

    Args:
        reply: As for ``OfflineServer``.
        holds: After how many pieces an answer to this request is held until its client goes away; ``NEVER``.

    Attributes:
        under_way: How many requests have not been answered to the end.
        sent: How many pieces have been sent, over all requests.
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
    """Return the customer, whom the page's agent names in its instructions."""
    return str(request.body["instructions"]).split()[1]


def order_then_answer(request: RecordedRequest) -> ReplyLike:
    """Call the page's tool; then answer with what it has returned, and at some length."""
    last = request.body["input"][-1]
    if last.get("type") != "function_call_output":
        return ScriptedToolCall("list_orders", {}, id=f"call_{customer_of(request)}")
    return answer_for(customer_of(request), last["output"])


def answer_for(customer: str, orders: str) -> str:
    """Return the model's answer: 30 pieces or so, none of which anybody else gets."""
    return f"{customer}: {orders} " + " ".join(f"{customer}-{number:02}" for number in range(30))


def is_last_turn(request: RecordedRequest) -> bool:
    """Whether the tool has been called already."""
    return "function_call_output" in json.dumps(request.body["input"])
