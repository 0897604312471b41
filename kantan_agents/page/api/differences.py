"""``api/diff``: two runs side by side."""

from __future__ import annotations

from typing import Any

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.routing import Route

from kantan_agents.page.api.answers import json_endpoint, state_of
from kantan_agents.page.data.side_by_side import side_by_side


async def _diff(request: Request) -> Any:
    wanted = request.path_params
    return await run_sync(side_by_side, state_of(request).store, wanted["one"], wanted["other"])


ROUTES = [Route("/diff/{one}/{other}", json_endpoint(_diff))]
