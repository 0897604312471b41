"""``approvals_app``: durable runs and the answers of people as an ASGI application."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kantan_agents.durable.http.answers import HEADERS, json_error, of_library, refused
from kantan_agents.durable.http.events import stream_events
from kantan_agents.durable.http.gate import Gate
from kantan_agents.durable.http.routes import answer_call, list_approvals, show_run
from kantan_agents.durable.management import Management
from kantan_agents.errors import InvalidOptionError, KantanAgentsError
from kantan_agents.support.arguments import shown
from kantan_agents.support.log import get_logger
from kantan_agents.support.request_checks import checked_token

_ERRORS: Final = {HTTPStatus.NOT_FOUND: "not_found", HTTPStatus.METHOD_NOT_ALLOWED: "method_not_allowed"}

_log = get_logger("kantan_agents.durable")


def approvals_app(runs: Management, *, token: str | None) -> Starlette:
    """Return routes to look at durable runs and to answer the calls that wait for people.

        app.mount("/durable", approvals_app(runs, token=os.environ["APPROVALS_TOKEN"]))

    - ``GET /approvals`` lists the calls that wait; with ``?all=1`` also those that were answered, with
      ``?run=`` only those of one run.
    - ``POST /approvals/{run}/{call}`` answers one, with a JSON object: ``answer`` (``"approve"`` or
      ``"reject"``), ``by``, and optionally ``arguments`` or ``reason``.
    - ``GET /runs/{run}`` is a run.
    - ``GET /runs/{run}/events?after=N`` are its events as server-sent events. An ``EventSource`` that has
      lost its connection goes on after the last one it got.

    Errors are JSON: ``{"error": {"code", "message"}}``. A request that a browser sends from another site is
    refused. Answers have texts of models and people in them: show them as text.

    Args:
        runs: The durable runs, started or not.
        token: What each request must send as ``Authorization: Bearer``, 16 or more ASCII characters. None
            lets everybody in who can reach the routes: then the service around them must decide who may.

    Raises:
        InvalidOptionError: E75, an argument is invalid.
    """
    if not isinstance(runs, Management):
        raise InvalidOptionError(option="runs", reason=f"must be a DurableRuns, not {shown(runs)}")
    known = None if token is None else checked_token(token)
    app = Starlette(
        routes=[
            Route("/approvals", list_approvals, methods=["GET"]),
            # A model may put a slash into an id.
            Route("/approvals/{run}/{call:path}", answer_call, methods=["POST"]),
            Route("/runs/{run}", show_run, methods=["GET"]),
            Route("/runs/{run}/events", stream_events, methods=["GET"]),
        ],
        middleware=[Middleware(Gate, token=known)],
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
    # Starlette sends this response past all middleware, so it needs the headers of the gate.
    _log.error("a request about durable runs has failed", path=request.url.path, exc_info=error)
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    response = json_error(type(error).__name__, "the request has failed; the log says why", status)
    response.headers.update(HEADERS)
    return response
