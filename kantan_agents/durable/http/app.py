"""``approvals_app``: durable runs and their approvals as an ASGI application."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, suppress
from http import HTTPStatus
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from kantan_agents.durable.http.answers import HEADERS, json_answer, json_error, of_library, refused
from kantan_agents.durable.http.gate import Gate
from kantan_agents.durable.management import Management
from kantan_agents.durable.records import call_data, whole_run
from kantan_agents.durable.storage.events import StoredEvent
from kantan_agents.durable.storage.names import stored_name
from kantan_agents.errors import InvalidOptionError, KantanAgentsError
from kantan_agents.support.arguments import shown
from kantan_agents.support.log import get_logger
from kantan_agents.support.packed_json import packed_json
from kantan_agents.support.request_checks import checked_token, host_check

_ERRORS: Final = {HTTPStatus.NOT_FOUND: "not_found", HTTPStatus.METHOD_NOT_ALLOWED: "method_not_allowed"}

_log = get_logger("kantan_agents.durable")
_MOST_BYTES: Final = 1_000_000
_KEYS: Final = frozenset({"answer", "by", "arguments", "reason"})

_QUIET_SECONDS: Final = 15.0
"""Seconds of silence before a comment is sent: proxies close idle connections."""

_MORE_COME: Final = ("queued", "running")


def approvals_app(runs: Management, *, token: str | None, hosts: Sequence[str] | None = None) -> Starlette:
    """Return HTTP routes that list durable runs and approve or reject their waiting calls.

        app.mount("/durable", approvals_app(runs, token=os.environ["APPROVALS_TOKEN"]))

    - ``GET /approvals`` lists the waiting calls; with ``?all=1`` also the answered ones, with ``?run=`` only
      the calls of one run.
    - ``POST /approvals/{run}/{call}`` answers one, with a JSON object: ``answer`` (``"approve"`` or
      ``"reject"``), ``by``, and optionally ``arguments`` or ``reason``.
    - ``GET /runs/{run}`` is a run.
    - ``GET /runs/{run}/events?after=N`` sends its events as server-sent events. An ``EventSource`` that has
      lost its connection resumes after its last event.

    Errors are JSON: ``{"error": {"code", "message"}}``. A request that a browser sends from another site is
    rejected. Answers contain the words of models and users: render them as plain text, not as HTML.

    Args:
        runs: The durable runs, started or not.
        token: The token that each request must send as ``Authorization: Bearer``, 16 or more ASCII
            characters. None allows every request: then the service around the routes must authenticate users.
        hosts: The host names of the routes, such as ``["ops.example"]``, each for all ports or with one; a
            request with another ``Host`` is rejected. The default is any host with a token, and without one
            only this machine's names, such as ``localhost``: a website can resolve its own name to this
            machine.

    Raises:
        InvalidOptionError: E75, an argument is invalid.
    """
    if not isinstance(runs, Management):
        raise InvalidOptionError(option="runs", reason=f"must be a DurableRuns, not {shown(runs)}")
    known = None if token is None else checked_token(token)
    accepts_host = host_check(hosts, only_loopback=known is None)
    app = Starlette(
        routes=[
            Route("/approvals", list_approvals, methods=["GET"]),
            # A model may put a slash into an id.
            Route("/approvals/{run}/{call:path}", answer_call, methods=["POST"]),
            Route("/runs/{run}", show_run, methods=["GET"]),
            Route("/runs/{run}/events", stream_events, methods=["GET"]),
        ],
        middleware=[Middleware(Gate, token=known, accepts_host=accepts_host)],
        exception_handlers={
            KantanAgentsError: of_library,
            HTTPException: _of_starlette,
            Exception: _failed,
        },
    )
    app.state.runs = runs
    return app


async def _of_starlette(request: Request, error: Exception) -> Response:
    del request
    status = HTTPStatus(getattr(error, "status_code", HTTPStatus.INTERNAL_SERVER_ERROR))
    return refused(_ERRORS.get(status, "refused"), status.phrase, status)


async def _failed(request: Request, error: Exception) -> Response:
    # Starlette sends this past all middleware, so it needs the gate's headers.
    _log.error("a request about durable runs has failed", path=request.url.path, exc_info=error)
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    response = json_error(type(error).__name__, "the request has failed; the log says why", status)
    response.headers.update(HEADERS)
    return response


async def list_approvals(request: Request) -> Response:
    """Return the waiting calls, the oldest first."""
    runs: Management = request.app.state.runs
    shows_all = request.query_params.get("all", "") not in ("", "0", "false")
    calls = await runs.list_approvals(answered=shows_all, run_id=request.query_params.get("run"))
    return json_answer({"approvals": [call_data(call) for call in calls]})


async def answer_call(request: Request) -> Response:
    """Answer a waiting call."""
    runs: Management = request.app.state.runs
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":  # a form of another site can only send other types
        return refused("media_type", "send application/json", HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    body = await _body(request)
    if body is None:
        return refused("too_large", f"send {_MOST_BYTES:,} bytes at most", HTTPStatus(413))
    given = _object(body)
    run_id, call_id = request.path_params["run"], request.path_params["call"]
    if given["answer"] == "approve":
        await runs.approve(run_id, call_id, by=given.get("by", ""), arguments=given.get("arguments"))
    else:
        await runs.reject(run_id, call_id, by=given.get("by", ""), reason=given.get("reason"))
    calls = await runs.list_approvals(answered=True, run_id=run_id)
    names = (call_id, stored_name(call_id))
    return json_answer(next((call_data(call) for call in calls if call.call_id in names), {}))


async def show_run(request: Request) -> Response:
    """Return a run."""
    return json_answer(await whole_run(request.app.state.runs, request.path_params["run"]))


async def _body(request: Request) -> bytes | None:
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > _MOST_BYTES:
                return None
    except ClientDisconnect:
        return b""
    return bytes(body)


def _object(body: bytes) -> dict[str, Any]:
    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidOptionError(option="body", reason=f"is not JSON: {error}") from error
    if not isinstance(given, dict):
        raise InvalidOptionError(option="body", reason="must be a JSON object")
    unknown = sorted(given.keys() - _KEYS)
    if unknown:
        raise InvalidOptionError(option="body", reason=f"has an unknown key {unknown[0]!r}")
    if given.get("answer") not in ("approve", "reject"):
        reason = f'must be "approve" or "reject", not {given.get("answer")!r}'
        raise InvalidOptionError(option="answer", reason=reason)
    reason_given, arguments = given.get("reason"), given.get("arguments")
    # A mixture of both answers is a mistake with an unknown intention.
    if given["answer"] == "approve" and reason_given is not None:
        raise InvalidOptionError(option="reason", reason="belongs to a rejection")
    if given["answer"] == "reject" and arguments is not None:
        raise InvalidOptionError(option="arguments", reason="belong to an approval")
    if reason_given is not None and not isinstance(reason_given, str):
        raise InvalidOptionError(option="reason", reason="must be a text")
    return given


async def stream_events(request: Request) -> Response:
    """Send the events of a run after a number, as they arrive.

    ``Last-Event-ID`` replaces ``after``. After the event ``end``, status 204 stops an ``EventSource``.
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
    if not (given.isascii() and given.isdecimal() and len(given) < 16):  # noqa: PLR2004 - any stored number
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
