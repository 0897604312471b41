"""Skips the OpenAI client's conversion of plain JSON in requests.

The client compares every tool and item with every type of its union, to find file handles, dates and renamed
fields: four fifths of a turn with a hundred tools. Plain lists bypass it.
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

from kantan_agents.models.client_retries import client_retries_off
from kantan_agents.models.plain_data import is_plain

_CLIENT = f"{Path(openai.__file__).parent}{os.sep}"
_EXTRA = "extra_json"  # the client's name of ``extra_body``


class _LightResponses(AsyncResponses):
    def __init__(self, client: AsyncOpenAI) -> None:
        super().__init__(client)
        self._post = _restore_lists(client.post)

    async def create(self, **options: Any) -> Any:
        return await super().create(**_defer_lists(AsyncResponses, options, "input", "tools"))


class _LightCompletions(AsyncCompletions):
    def __init__(self, client: AsyncOpenAI) -> None:
        super().__init__(client)
        self._post = _restore_lists(client.post)

    async def create(self, **options: Any) -> Any:
        return await super().create(**_defer_lists(AsyncCompletions, options, "messages", "tools"))


class _DeferredLists(dict[str, Any]):
    """The ``extra_body`` of a request, with the lists that bypass the conversion.

    The dict contains them too, for a client that copies it.
    """

    def __init__(self, extra: Mapping[str, Any] | None, lists: dict[str, Any]) -> None:
        super().__init__({**lists, **(extra or {})})
        self.extra = extra
        self.lists = lists


def use_light_requests(client: AsyncOpenAI, model: Model) -> None:
    """Skip the conversion for ``model``, unless resources were customized."""
    if not isinstance(client, AsyncOpenAI):
        return
    # Both are cached properties, so they can be replaced.
    if isinstance(model, OpenAIResponsesModel) and _is_unmodified(client.responses, AsyncResponses, client):
        client.responses = _LightResponses(client)  # type: ignore[misc]
    if isinstance(model, OpenAIChatCompletionsModel):
        chat = client.chat
        if _is_unmodified(chat.completions, AsyncCompletions, client):
            chat.completions = _LightCompletions(client)  # type: ignore[misc]


def sends_light_requests(model: object) -> bool:
    """Return whether ``model`` skips the conversion."""
    client = getattr(model, "_client", None)
    if isinstance(model, OpenAIResponsesModel):
        return isinstance(getattr(client, "responses", None), _LightResponses)
    if isinstance(model, OpenAIChatCompletionsModel):
        return isinstance(getattr(getattr(client, "chat", None), "completions", None), _LightCompletions)
    return False


def _is_unmodified(
    resource: object, kind: type[AsyncResponses | AsyncCompletions], client: AsyncOpenAI
) -> bool:
    return type(resource) is kind and vars(resource) == vars(kind(client))


def _defer_lists(kind: type, options: dict[str, Any], *names: str) -> dict[str, Any]:
    extra = options.get("extra_body")
    if not isinstance(extra, (Mapping, type(None))) or _is_wrapped(kind):
        return options
    lists = {name: options[name] for name in names if _is_plain_list(options.get(name))}
    empty: dict[str, Any] = {name: [] for name in lists}  # placeholders
    return {**options, **empty, "extra_body": _DeferredLists(extra, lists)} if lists else options


def _restore_lists(post: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
    async def restore(path: str, *, body: Any = None, options: Any = None, **more: Any) -> Any:
        deferred = (options or {}).get(_EXTRA)
        if isinstance(deferred, _DeferredLists):
            body = {**body, **deferred.lists}
            options = {name: option for name, option in options.items() if name != _EXTRA}
            if deferred.extra is not None:
                options[_EXTRA] = deferred.extra
        if client_retries_off.get():
            options = {**(options or {}), "max_retries": 0}
        return await post(path, body=body, options=options or {}, **more)

    return restore


def _is_wrapped(kind: type) -> bool:
    """Return whether an instrumentation wraps the client's method."""
    create = getattr_static(kind, "create")
    return type(create) is not FunctionType or not create.__code__.co_filename.startswith(_CLIENT)


def _is_plain_list(value: Any) -> bool:
    try:
        return isinstance(value, list) and is_plain(value)
    except RecursionError:  # nested too deeply, or contains itself: left to the client
        return False
