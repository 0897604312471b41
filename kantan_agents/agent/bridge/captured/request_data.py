"""Converts a request to the data that a record stores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents import Model

from kantan_agents.agent.bridge.captured.definitions import (
    encode,
    handoff_data,
    output_data,
    settings_data,
    tool_data,
)
from kantan_agents.agent.bridge.captured.models import provider_options
from kantan_agents.core.interception import ModelCall, redacted_data
from kantan_agents.models.protocol.translate.openai_responses.provider_data import without_media
from kantan_agents.models.structured.requests.request import Request
from kantan_agents.traces.capture.canonical import decode

OPTIONS = ("previous_response_id", "conversation_id", "prompt")


def sent_options(model: Model, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that shape a request, including the provider's and empty ones."""
    sent: dict[str, Any] = {}
    for name in OPTIONS:
        value = options.get(name)
        if value is not None:
            sent[name] = value
    of_provider = provider_options(model)
    if of_provider:
        sent["provider"] = of_provider
    return sent


def request_data(call: ModelCall, request: Request, model: Model) -> dict[str, Any]:
    """Return the nonempty parts of a request by name."""
    run = call.run
    data = _parts(request, model)
    data = {name: redacted_data(run, value) for name, value in data.items() if value or value == ""}
    output = _output_data(call, request)
    if output is not None:
        data["output"] = output
    given = request.input
    data["input"] = redacted_data(run, [*map(without_media, given)] if isinstance(given, list) else given)
    return data


def unredacted_request(call: ModelCall, request: Request, model: Model) -> dict[str, Any]:
    """Return everything in a request. Distinguishes requests; must not be recorded."""
    return {**_parts(request, model), "output": _output_data(call, request), "input": request.input}


def _parts(request: Request, model: Model) -> dict[str, Any]:
    return {
        "instructions": request.instructions,
        "settings": settings_data(request.settings),
        "tools": [tool_data(tool) for tool in request.tools],
        "handoffs": [handoff_data(handoff) for handoff in request.handoffs],
        "options": sent_options(model, request.options),
    }


def _output_data(call: ModelCall, request: Request) -> dict[str, Any] | None:
    fetch = call._structured
    schema = request.schema if request.schema is not None else getattr(fetch, "schema", None)
    if schema is None or schema.is_plain_text():
        return None
    mode = "native" if request.schema is not None else getattr(fetch, "mode", None) or "native"
    return output_data(schema, mode)


def plain_request_data(call: ModelCall, request: Request, model: Model) -> dict[str, Any]:
    """Return a request as JSON data."""
    data: dict[str, Any] = decode(encode(request_data(call, request, model)))
    return data
