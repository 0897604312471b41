"""Requests to the OpenAI client that need not be compared with every type it knows.

Before each request the client walks every tool and every item of the input once for each kind there is,
looking for file handles, dates and renamed fields: four fifths of a turn that shows a hundred tools. What is
plain JSON has none of them. It is led around that walk, and back in its place before anybody else sees it.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from inspect import getattr_static
from pathlib import Path
from types import FunctionType
from typing import Any

import openai
from agents import Model, OpenAIChatCompletionsModel, OpenAIResponsesModel
from openai import AsyncOpenAI
from openai.resources.chat.completions import AsyncCompletions
from openai.resources.responses import AsyncResponses

from kantan_agents.support.plain_data import is_plain

_CLIENT = f"{Path(openai.__file__).parent}{os.sep}"
_EXTRA = "extra_json"  # what the client calls its ``extra_body`` from there on


class _LightResponses(AsyncResponses):
    def __init__(self, client: AsyncOpenAI) -> None:
        super().__init__(client)
        self._post = _putting_back(client.post)

    async def create(self, **options: Any) -> Any:
        return await super().create(**_lightened(AsyncResponses, options, "input", "tools"))


class _LightCompletions(AsyncCompletions):
    def __init__(self, client: AsyncOpenAI) -> None:
        super().__init__(client)
        self._post = _putting_back(client.post)

    async def create(self, **options: Any) -> Any:
        return await super().create(**_lightened(AsyncCompletions, options, "messages", "tools"))


class _Aside(dict[str, Any]):
    """The user's extra body, with lists that are to be put back where they were taken from.

    They are in it as well: should it be copied on its way, the client itself puts them into the request.
    """

    def __init__(self, extra: Mapping[str, Any] | None, lists: dict[str, Any]) -> None:
        super().__init__({**lists, **(extra or {})})
        self.extra = extra
        self.lists = lists


def lighten(client: AsyncOpenAI, model: Model) -> None:
    """Have ``model`` send light requests through ``client``, unless somebody has put in parts of their own.

    Whoever else uses the client sends what they did before.
    """
    if not isinstance(client, AsyncOpenAI):
        return
    # Both are cached properties: what is set stays.
    if isinstance(model, OpenAIResponsesModel) and _is_as_made(client.responses, AsyncResponses, client):
        client.responses = _LightResponses(client)  # type: ignore[misc]
    if isinstance(model, OpenAIChatCompletionsModel):
        chat = client.chat
        if _is_as_made(chat.completions, AsyncCompletions, client):
            chat.completions = _LightCompletions(client)  # type: ignore[misc]


def _is_as_made(resource: object, kind: type[AsyncResponses | AsyncCompletions], client: AsyncOpenAI) -> bool:
    return type(resource) is kind and vars(resource) == vars(kind(client))


def _lightened(kind: type, options: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return ``options`` with the lists of these names aside, where they are plain JSON."""
    extra = options.get("extra_body")
    if not isinstance(extra, (Mapping, type(None))) or _is_watched(kind):
        return options
    lists = {name: options[name] for name in names if _is_plain_list(options.get(name))}
    empty: dict[str, Any] = {name: [] for name in lists}  # holds the place
    return {**options, **empty, "extra_body": _Aside(extra, lists)} if lists else options


def _putting_back(post: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
    async def put_back(path: str, *, body: Any = None, options: Any = None, **more: Any) -> Any:
        aside = (options or {}).get(_EXTRA)
        if isinstance(aside, _Aside):
            body = {**body, **aside.lists}
            options = {name: option for name, option in options.items() if name != _EXTRA}
            if aside.extra is not None:
                options[_EXTRA] = aside.extra
        return await post(path, body=body, options=options or {}, **more)

    return put_back


def _is_watched(kind: type) -> bool:
    """Whether somebody has wrapped the client's method, as instrumentations do, to read what it is given."""
    create = getattr_static(kind, "create")
    return type(create) is not FunctionType or not create.__code__.co_filename.startswith(_CLIENT)


def _is_plain_list(value: Any) -> bool:
    try:
        return isinstance(value, list) and is_plain(value)
    except RecursionError:  # deeper than this, or within itself: the client says what it says
        return False
