"""``api/prompts``. Names are query parameters, because they may have slashes."""

from __future__ import annotations

from typing import Any

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.routing import Route

from kantan_agents.errors import InvalidOptionError, PromptNotRecordedError
from kantan_agents.page.api.answers import json_endpoint, state_of
from kantan_agents.page.data.prompt_versions import changed_lines, prompt_list, prompt_versions
from kantan_agents.page.data.scores_over_time import scores_over_time


async def _prompts(request: Request) -> Any:
    return {"prompts": await run_sync(prompt_list, state_of(request).store)}


async def _versions(request: Request) -> Any:
    store, name = state_of(request).store, _name(request)
    found = await run_sync(prompt_versions, store, name)
    if not found:
        raise PromptNotRecordedError(prompt=name, path=str(store.path))
    return {"name": name, "versions": found}


async def _scores(request: Request) -> Any:
    return await run_sync(scores_over_time, state_of(request).store, _name(request))


async def _diff(request: Request) -> Any:
    query = request.query_params
    # A plain string as a prompt has no version, which is the empty string here.
    old, new = query.get("old") or None, query.get("new") or None
    diff = await state_of(request).store.prompt_diff_async(_name(request), old, new)
    return {"lines": changed_lines(diff)}


def _name(request: Request) -> str:
    name = request.query_params.get("name")
    if not name:
        raise InvalidOptionError(option="name", reason="must be the name of a prompt")
    return name


ROUTES = [
    Route("/prompts", json_endpoint(_prompts)),
    Route("/prompts/versions", json_endpoint(_versions)),
    Route("/prompts/scores", json_endpoint(_scores)),
    Route("/prompts/diff", json_endpoint(_diff)),
]
