"""Requests the usage of streamed chat completions, which most servers send only on request.

A server that rejects this gets the request without it, then and later.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import Any

from agents import Model, OpenAIChatCompletionsModel, OpenAIResponsesModel
from openai import APIStatusError

from kantan_agents.models.chat_results import ChatModel
from kantan_agents.models.origin import ModelOrigin, Origins, origin_of
from kantan_agents.models.protocol import ProviderModel
from kantan_agents.support.log import get_logger

_REJECTED = (400, 422)
_PARAMETERS = ("stream_options", "include_usage")
_END: Any = object()
_log = get_logger("kantan_agents.models")


REFUSALS = Origins()
"""The models whose servers reject a request for usage."""


def stream_with_usage(
    model: Model, settings: Any, open_stream: Callable[[Any], AsyncIterator[Any]]
) -> AsyncIterator[Any]:
    """Stream a model with usage, unless the settings decide about it.

    The Responses API and protocol providers always send it; ``NamedModel`` and ``AskingChatModel`` request it
    themselves.
    """
    if _decides(settings) or isinstance(model, _NOT_ASKED) or _delegates(model):
        return open_stream(settings)
    return _asked(model, settings, open_stream)


class AskingChatModel(ChatModel):
    """The chat completions model of kantan-llm's clients, which requests usage under any runner.

    It has the names of the SDK's class, as `ChatModel`.
    """

    __module__ = ChatModel.__module__
    __qualname__ = ChatModel.__qualname__

    @classmethod
    def adopt(cls, model: Model) -> None:
        """Convert an instance of the SDK's class; ignore other models."""
        if type(model) is OpenAIChatCompletionsModel:
            changed: Any = model
            changed.__class__ = cls

    def stream_response(
        self, system_instructions: str | None, input: Any, model_settings: Any, *args: Any, **kwargs: Any
    ) -> AsyncIterator[Any]:
        """Stream a response with usage."""
        call = super().stream_response

        def open_stream(settings: Any) -> AsyncIterator[Any]:
            return call(system_instructions, input, settings, *args, **kwargs)

        if _decides(model_settings):
            return open_stream(model_settings)
        return _asked(self, model_settings, open_stream)


_NOT_ASKED = (OpenAIResponsesModel, ProviderModel, AskingChatModel)


def _asked(
    model: Model, settings: Any, open_stream: Callable[[Any], AsyncIterator[Any]]
) -> AsyncIterator[Any]:
    origin = origin_of(model)
    if origin in REFUSALS:
        return open_stream(settings)
    return _asking(origin, settings, open_stream)


def _decides(settings: Any) -> bool:
    if getattr(settings, "include_usage", True) is not None:
        return True
    extra = (getattr(settings, name, None) for name in ("extra_args", "extra_body"))
    return any(isinstance(options, Mapping) and _PARAMETERS[0] in options for options in extra)


def _delegates(model: Model) -> bool:
    return hasattr(type(model), "current_model")  # a NamedModel


async def _asking(
    origin: ModelOrigin, settings: Any, open_stream: Callable[[Any], AsyncIterator[Any]]
) -> AsyncGenerator[Any, None]:
    asking = copy.copy(settings)
    asking.include_usage = True
    events: Any = open_stream(asking)
    steps = aiter(events)
    rejected: APIStatusError | None = None
    try:
        try:
            event = await anext(steps, _END)  # sends the request
        except APIStatusError as error:
            if not _is_about_usage(error):
                raise
            rejected = error
        if rejected is not None:
            await _close(events)
            events = open_stream(settings)
            steps = aiter(events)
            event = await anext(steps, _END)
            REFUSALS.add(origin)
            _log.warning(
                "the server rejects stream_options, so it sends no usage for streamed answers",
                model=origin.model,
                status=rejected.status_code,
            )
        while event is not _END:
            yield event
            event = await anext(steps, _END)
    finally:
        await _close(events)


async def _close(events: Any) -> None:
    close = getattr(events, "aclose", None)
    if close is not None:
        await close()


def _is_about_usage(error: APIStatusError) -> bool:
    return error.status_code in _REJECTED and any(name in str(error) for name in _PARAMETERS)
