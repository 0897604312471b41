"""``api/runs``: the table of runs."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.routing import Route

from kantan_agents.page.api.answers import json_endpoint, state_of
from kantan_agents.page.data.run_rows import run_row


async def _runs(request: Request) -> Any:
    found = await state_of(request).store.traces_async(limit=100)
    return {"runs": [run_row(trace) for trace in found]}


ROUTES = [Route("/runs", json_endpoint(_runs))]
