"""``api/runs``: the table of runs."""

from __future__ import annotations

import re
from typing import Any, Final

from anyio.to_thread import run_sync
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.routing import Route

from kantan_agents.errors import InvalidOptionError
from kantan_agents.page.api.answers import json_endpoint, state_of
from kantan_agents.page.api.parameters import count_of, flag_of, number_of, text_of, time_of
from kantan_agents.page.data.run_table import choices, run_row
from kantan_agents.traces.backend import backend_of
from kantan_agents.traces.store import TraceStore
from kantan_agents.traces.store.connection import sqlite_errors

_PAGE: Final = 100
_LARGEST_PAGE: Final = 200

# A phrase in quotes is one word. An open quote belongs to the word: the user is still typing.
_WORD: Final = re.compile(r'"([^"]+)"|(\S+)')
_ERRORS: Final = {"failed": {"has_failed": True}, "any": {"has_error": True}, "none": {"has_error": False}}


def filters_of(query: QueryParams) -> dict[str, Any]:
    """Return arguments for ``TraceStore.traces``."""
    found: dict[str, Any] = {name: text_of(query, name) for name in ("agent", "prompt", "version", "tool")}
    found["keywords"] = words_in(query.get("words", ""))
    errors = text_of(query, "errors")
    if errors is not None:
        if errors not in _ERRORS:
            raise InvalidOptionError(
                option="errors", reason=f"must be one of {', '.join(_ERRORS)}, not {errors!r}"
            )
        found |= _ERRORS[errors]
    if flag_of(query, "denied"):
        found["has_denial"] = True
    if flag_of(query, "cut"):
        found["has_cut_answer"] = True
    found["rubric_below"] = number_of(query, "score_below")
    found["started_from"], found["started_to"] = time_of(query, "from"), time_of(query, "to")
    return found


def words_in(text: str) -> list[str]:
    """A phrase in quotes is one word."""
    return [phrase or word for phrase, word in _WORD.findall(text)]


async def _runs(request: Request) -> Any:
    query = request.query_params
    limit = count_of(query, "limit", _PAGE, _LARGEST_PAGE)
    store = state_of(request).store
    found = await store.traces_async(limit=limit, before=text_of(query, "before"), **filters_of(query))
    return {
        "runs": [run_row(trace) for trace in found],
        "before": found[-1].trace_id if len(found) == limit else None,
    }


async def _version(request: Request) -> Any:
    return {"version": await run_sync(_version_of, state_of(request).store)}


def _version_of(store: TraceStore) -> str:
    path = store.path
    with sqlite_errors(path):
        return backend_of(path).version()


async def _choices(request: Request) -> Any:
    store = state_of(request).store
    return await run_sync(lambda: choices(store.path))


ROUTES = [
    Route("/runs", json_endpoint(_runs)),
    Route("/version", json_endpoint(_version)),
    Route("/choices", json_endpoint(_choices)),
]
