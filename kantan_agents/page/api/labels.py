"""``api/labels``: no response shows a judge's score before the answer is stored."""

from __future__ import annotations

import functools
import secrets
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec
from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation.labels.arguments import checked_name
from kantan_agents.page.api.answers import json_endpoint, json_response, state_of
from kantan_agents.page.data.label_choices import label_choices
from kantan_agents.page.data.label_queue import Given, QueueRequest, WaitingResults, take_back
from kantan_agents.page.data.signed_data import signed_data
from kantan_agents.page.state import PageState
from kantan_agents.support.arguments import checked_list, checked_text

LARGEST_BODY: Final = 64 * 1024

Change = Callable[[Request, Mapping[str, Any]], Awaitable[Any]]


class RefusedChange(Exception):  # noqa: N818 - a response, not an error of the library
    """A change that was not made; ``code`` and ``details`` are for programs."""

    def __init__(self, status: HTTPStatus, code: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.status = status
        self.error = {"code": code, "message": message, **details}


def changing_endpoint(change: Change) -> Callable[[Request], Awaitable[Response]]:
    """Like ``json_endpoint``, for a function of the request and its JSON object.

    It rejects requests without the page's token (403), of another type than JSON (415), with a large body
    (413), and all requests if the page is read-only.
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


async def _choices(request: Request) -> Any:
    state = state_of(request)
    by = request.query_params.get("by")
    if by is not None:
        checked_name("by", by)
    return {"may_label": state.may_label, **await run_sync(label_choices, state.store, by)}


async def _next(request: Request, body: Mapping[str, Any]) -> Any:
    asked = QueueRequest.of(body)
    skipped = frozenset(
        checked_text("skipped", one) for one in checked_list("skipped", body.get("skipped", []))
    )
    return await run_sync(_find_next, state_of(request), asked, skipped)


def _find_next(state: PageState, asked: QueueRequest, skipped: frozenset[str]) -> Any:
    return WaitingResults.of(state.store, asked, state.secret).next(skipped)


async def _answer(request: Request, body: Mapping[str, Any]) -> Any:
    asked, item = QueueRequest.of(body), checked_text("item", body.get("item"))
    given = await run_sync(_store, state_of(request), asked, item, body)
    if given.is_stored:
        return given.answer
    if given.kept is None:
        reason = "This result was deleted meanwhile. Nothing was stored."
        raise RefusedChange(HTTPStatus.GONE, "deleted", reason)
    said = given.kept.label or f"{given.kept.value:g}"
    reason = f"You have answered this one already, in another window: {said}. That answer was kept."
    raise RefusedChange(HTTPStatus.CONFLICT, "labelled", reason)


def _store(state: PageState, asked: QueueRequest, item: str, body: Mapping[str, Any]) -> Given:
    found = WaitingResults.of(state.store, asked, state.secret)
    return found.answer(item, body.get("value"), body.get("comment"))


async def _undo(request: Request, body: Mapping[str, Any]) -> Any:
    state = state_of(request)
    receipt = signed_data(state.secret, body.get("receipt"))
    if receipt is None:
        raise InvalidOptionError(option="receipt", reason="must be the one that came with the answer")
    if not await run_sync(take_back, state.store, receipt):
        reason = "This answer was changed or deleted meanwhile. Nothing was taken back."
        raise RefusedChange(HTTPStatus.CONFLICT, "changed", reason)
    return {"undone": True}


ROUTES = [
    Route("/labels", json_endpoint(_choices)),
    Route("/labels", changing_endpoint(_answer), methods=["POST"]),
    Route("/labels/next", changing_endpoint(_next), methods=["POST"]),
    Route("/labels/undo", changing_endpoint(_undo), methods=["POST"]),
]
