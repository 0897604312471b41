"""What a request must pass that changes something: the page's token, and the type and size of its body."""

from __future__ import annotations

import functools
import secrets
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from kantan_agents.page.api.answers import json_endpoint, json_response, state_of

LARGEST_BODY: Final = 64 * 1024

Change = Callable[[Request, Mapping[str, Any]], Awaitable[Any]]


class RefusedChange(Exception):  # noqa: N818 - it is an answer, and no error of the library
    """A change that was not made.

    Args:
        status: The status of the response.
        code: A word for a program.
        message: The reason, for a person.
        details: More data for a program.
    """

    def __init__(self, status: HTTPStatus, code: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.status = status
        self.error = {"code": code, "message": message, **details}


def changing_endpoint(change: Change) -> Callable[[Request], Awaitable[Response]]:
    """Make an endpoint of a function of the request and its JSON object, as ``json_endpoint`` does.

    It refuses requests without the token of the page with status 403, of another type than JSON with 415,
    with a large body with 413, and all of them if labels may not be given.
    """

    @functools.wraps(change)
    async def checked(request: Request) -> Any:
        _check_rights(request)
        return await change(request, await _body(request))

    answer = json_endpoint(checked)

    @functools.wraps(change)
    async def answered(request: Request) -> Response:
        try:
            return await answer(request)
        except RefusedChange as refused:
            return json_response({"error": refused.error}, refused.status)

    return answered


def _check_rights(request: Request) -> None:
    state = state_of(request)
    if not state.may_label:
        raise RefusedChange(HTTPStatus.FORBIDDEN, "read-only", "Labels cannot be given on this page.")
    given = request.headers.getlist("x-kantan-token")
    token = state.token.encode()
    if len(given) != 1 or not secrets.compare_digest(given[0].encode("latin-1"), token):
        reason = "This window belongs to a server that has ended, or to another one. Load the page again."
        raise RefusedChange(HTTPStatus.FORBIDDEN, "token", reason)


async def _body(request: Request) -> Mapping[str, Any]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RefusedChange(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "type", "The body must be JSON.")
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > LARGEST_BODY:
            reason = f"The body has more than {LARGEST_BODY:,} bytes."
            raise RefusedChange(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "size", reason)
        parts.append(part)
    try:
        found = msgspec.json.decode(b"".join(parts))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise RefusedChange(HTTPStatus.BAD_REQUEST, "body", "The body must be a JSON object.")
    return found
