"""JSON responses, and errors as JSON."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from kantan_agents.errors import KantanAgentsError
from kantan_agents.support.packed_json import packed_json

HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_STATUS: Final = {
    "E154": HTTPStatus.NOT_FOUND,
    "E155": HTTPStatus.INTERNAL_SERVER_ERROR,
    "E156": HTTPStatus.SERVICE_UNAVAILABLE,
    "E157": HTTPStatus.CONFLICT,
    "E158": HTTPStatus.CONFLICT,
}


def json_answer(data: Any, status: HTTPStatus = HTTPStatus.OK) -> Response:
    """Return data as a response."""
    return Response(packed_json(data), status, media_type="application/json")


def json_error(code: str, message: str, status: HTTPStatus) -> Response:
    """Return an error as a response."""
    return json_answer({"error": {"code": code, "message": message}}, status)


def refused(code: str, message: str, status: HTTPStatus) -> Response:
    """Return a rejection as a response."""
    return json_error(code, f"refused: {message}", status)


async def of_library(request: Request, error: Exception) -> Response:
    """Return a library error as a response."""
    del request
    code = str(error.code) if isinstance(error, KantanAgentsError) else type(error).__name__
    return json_error(code, str(error), _STATUS.get(code, HTTPStatus.BAD_REQUEST))
