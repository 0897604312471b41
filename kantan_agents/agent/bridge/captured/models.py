"""Identifies the model and provider of a call."""

from __future__ import annotations

from typing import Any
from weakref import ref

from agents import Model, OpenAIChatCompletionsModel, OpenAIResponsesModel

from kantan_agents.agent.bridge.captured.definitions import encode
from kantan_agents.models.origin import origin_of
from kantan_agents.models.protocol import ProviderModel
from kantan_agents.traces.capture.shared import Shared

_MOST_KNOWN = 1_024

_known: dict[int, tuple[ref[Model], Shared]] = {}


def shared_model(model: Model) -> Shared:
    """Return provider, name, URL and API of a model."""
    current_model = getattr(type(model), "current_model", None)  # of a NamedModel
    if current_model is not None:
        model = current_model(model)
    # Every run waits for this; a WeakKeyDictionary takes five times as long.
    known = _known.get(id(model))
    if known is not None and known[0]() is model:
        return known[1]
    found = Shared("model", encode(_data(model)))
    if type(model).__hash__ is None:
        return found  # it may be a dataclass whose fields change
    try:
        reference = ref(model)
    except TypeError:  # it cannot be weakly referenced
        return found
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    _known[id(model)] = reference, found
    return found


def provider_options(model: Model) -> dict[str, Any]:
    """Return the request options that a custom provider adds."""
    options = getattr(getattr(model, "provider", None), "request_options", None)
    return dict(options) if isinstance(options, dict) else {}


def _data(model: Model) -> dict[str, Any]:
    origin = origin_of(model)
    provider = origin.provider
    if isinstance(model, ProviderModel):
        provider = model.provider.name.partition("/")[0]
    return {"provider": provider, "model": origin.model, "url": origin.base_url, "api": _api_of(model)}


def _api_of(model: Model) -> str:
    if isinstance(model, OpenAIChatCompletionsModel):
        return "chat completions"
    return "responses" if isinstance(model, OpenAIResponsesModel) else "other"
