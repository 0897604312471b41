"""``api/comparisons``: evaluations and changed replays."""

from __future__ import annotations

from typing import Any

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.routing import Route

from kantan_agents.errors import InvalidOptionError
from kantan_agents.page.api.answers import json_endpoint, state_of
from kantan_agents.page.api.parameters import text_of
from kantan_agents.page.data.comparisons import changed_runs, compared_variants, comparison_list


async def _comparisons(request: Request) -> Any:
    return await run_sync(comparison_list, state_of(request).store)


async def _evaluation(request: Request) -> Any:
    query = request.query_params
    chosen = text_of(query, "a"), text_of(query, "b")
    return await run_sync(compared_variants, state_of(request).store, _name(request), *chosen)


async def _experiment(request: Request) -> Any:
    return await run_sync(changed_runs, state_of(request).store, _name(request))


def _name(request: Request) -> str:
    name = text_of(request.query_params, "name")
    if name is None:
        raise InvalidOptionError(option="name", reason="must be the name of an evaluation or of a replay")
    return name


ROUTES = [
    Route("/comparisons", json_endpoint(_comparisons)),
    Route("/comparisons/evaluation", json_endpoint(_evaluation)),
    Route("/comparisons/experiment", json_endpoint(_experiment)),
]
