"""Endpoints that answer in JSON."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from kantan_agents.errors import KantanAgentsError
from kantan_agents.page.state import PageState
from kantan_agents.support.packed_json import packed_json

Endpoint = Callable[[Request], Awaitable[Any]]

_NOT_FOUND = frozenset({"E61", "E87", "E104"})


def state_of(request: Request) -> PageState:
    """Return the requested page's state."""
    state: PageState = request.app.state.page
    return state


def json_endpoint(endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    """Turn a function that returns JSON data into an endpoint.

    Errors of this library become ``{"error": {"code", "message"}}``, with status 404 for missing things and
    400 otherwise.
    """

    @functools.wraps(endpoint)
    async def answered(request: Request) -> Response:
        try:
            answer = await endpoint(request)
            return answer if isinstance(answer, Response) else json_response(answer)
        except KantanAgentsError as error:
            status = HTTPStatus.NOT_FOUND if error.code in _NOT_FOUND else HTTPStatus.BAD_REQUEST
            return json_response({"error": {"code": error.code, "message": str(error)}}, status)

    return answered


def json_response(data: Any, status: HTTPStatus = HTTPStatus.OK) -> Response:
    """Caches must not store it."""
    return Response(packed_json(data), status, {"Cache-Control": "no-store"}, "application/json")
