"""Models that stand for recorded ones whose key or URL is missing here. They are described, never called."""

from __future__ import annotations

from collections.abc import Sequence

from agents import Model, OpenAIChatCompletionsModel, OpenAIResponsesModel
from openai import AsyncOpenAI

from kantan_agents.models.origin import register_origin
from kantan_agents.traces.capture import ModelCallRecord

_NOWHERE = "http://replay.invalid/"


def stand_in_for(name: str | None, calls: Sequence[ModelCallRecord]) -> Model:
    """Return a model with the name, the API and the provider of a recorded call.

    Args:
        name: The name at the provider; None for the default model.
        calls: The recorded calls, of which the first with this name is taken.
    """
    call = next((one for one in calls if one.model == name), calls[0] if calls else None)
    url = call.url if call is not None and call.url.startswith("http") else _NOWHERE
    client = AsyncOpenAI(api_key="replay", base_url=url, max_retries=0)
    is_chat = call is not None and call.api == "chat completions"
    known = name if name is not None else (call.model if call is not None else "unknown")
    model: Model = (
        OpenAIChatCompletionsModel(model=known, openai_client=client)
        if is_chat
        else OpenAIResponsesModel(model=known, openai_client=client)
    )
    if call is not None and call.provider is not None:
        register_origin(model, call.provider)
    return model
