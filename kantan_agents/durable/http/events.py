"""The events of a run as server-sent events, whose ids are their numbers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from http import HTTPStatus
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from kantan_agents.durable.management import Management
from kantan_agents.durable.storage.events import StoredEvent
from kantan_agents.errors import InvalidOptionError
from kantan_agents.support.packed_json import packed_json

_QUIET_SECONDS: Final = 15.0
"""After so much silence a comment is sent: proxies close connections that send nothing."""

_MORE_COME: Final = ("queued", "running")


async def stream_events(request: Request) -> Response:
    """Send the events of a run after a number, as they come.

    The header ``Last-Event-ID``, which an ``EventSource`` sends when it connects again, replaces ``after``.
    When the run has ended, an event of the type ``end`` says so; who asks again after it gets status 204, at
    which an ``EventSource`` gives up.
    """
    runs: Management = request.app.state.runs
    run_id = request.path_params["run"]
    after = _number(request)
    status = (await runs.get(run_id)).status
    events: Any = runs.events(run_id, after=after)
    first: StoredEvent | None = None
    if status not in _MORE_COME:
        first = await anext(events, None)
        if first is None and "last-event-id" in request.headers:
            return Response(status_code=HTTPStatus.NO_CONTENT)
    if request.method == "HEAD":
        return Response(media_type="text/event-stream")
    return StreamingResponse(_stream(runs, run_id, events, first), media_type="text/event-stream")


def _number(request: Request) -> int:
    given = request.headers.get("last-event-id") or request.query_params.get("after", "0")
    if not (given.isascii() and given.isdecimal() and len(given) < 16):  # noqa: PLR2004 - any that is stored
        raise InvalidOptionError(option="after", reason=f"must be a number from 0, not {given!r}")
    return int(given)


async def _stream(
    runs: Management, run_id: str, events: Any, first: StoredEvent | None
) -> AsyncIterator[bytes]:
    if first is not None:
        yield _message(first)
    async with aclosing(events):
        waiting: asyncio.Task[StoredEvent | None] | None = None
        try:
            while True:
                waiting = waiting or asyncio.ensure_future(anext(events, None))
                done, _ = await asyncio.wait({waiting}, timeout=_QUIET_SECONDS)
                if not done:
                    yield b": still here\n\n"
                    continue
                event, waiting = waiting.result(), None
                if event is None:
                    break
                yield _message(event)
        finally:
            if waiting is not None:
                waiting.cancel()
                with suppress(asyncio.CancelledError):
                    await waiting
    status = (await runs.get(run_id)).status
    ended = {"run_id": run_id, "status": status, "next_run": await runs.next_run(run_id)}
    yield b"event: end\ndata: " + packed_json(ended) + b"\n\n"


def _message(event: StoredEvent) -> bytes:
    # Without `event:`, so that `onmessage` gets all of them. JSON has no line ends.
    return b"id: %d\ndata: %s\n\n" % (event.sequence, packed_json(dict(event.data)))
