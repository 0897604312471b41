"""Adopts the SDK's models."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from typing import Any, Final

from agents import OpenAIChatCompletionsModel, OpenAIResponsesModel

from kantan_agents.models.chat_results import ChatModel
from kantan_agents.models.responses_model import ResponsesModel

_OWN: Final = ((OpenAIChatCompletionsModel, ChatModel), (OpenAIResponsesModel, ResponsesModel))


def adopt(model: object) -> None:
    """Give an OpenAI model this library's class."""
    kind = type(model)
    for sdk, own in _OWN:
        if issubclass(kind, sdk) and not issubclass(kind, own):
            with suppress(TypeError):  # a subclass whose instances have another layout
                model.__class__ = _joined(own, kind)


@lru_cache(maxsize=256)
def _joined(own: Any, kind: Any) -> Any:
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    return type(kind.__name__, (own, kind), names)
