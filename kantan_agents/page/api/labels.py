"""``api/labels``: the labelling queue. What a judge says is in no response before the answer is stored."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.routing import Route

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation.labels.arguments import checked_name
from kantan_agents.page.api.answers import json_endpoint, state_of
from kantan_agents.page.api.changes import RefusedChange, changing_endpoint
from kantan_agents.page.data.label_choices import label_choices
from kantan_agents.page.data.label_queue import Given, QueueRequest, WaitingResults, take_back
from kantan_agents.page.data.signed_data import signed_data
from kantan_agents.page.state import PageState
from kantan_agents.support.arguments import checked_list, checked_text


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
