"""Attributes of model calls."""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from agents import Model

from kantan_agents.core.interception import active_sdk_agent
from kantan_agents.core.pipeline import current_run
from kantan_agents.models.finish_reasons import finish_reason
from kantan_agents.models.model_wrapper import unwrapped
from kantan_agents.models.origin import ModelOrigin, origin_of
from kantan_agents.traces.telemetry import conventions as names
from kantan_agents.traces.telemetry.values import attribute_value, name_value, text_value

_DETAILS = {
    names.CACHE_READ_TOKENS: ("input_tokens_details", "cached_tokens"),
    names.CACHE_WRITE_TOKENS: ("input_tokens_details", "cache_write_tokens"),
    names.REASONING_TOKENS: ("output_tokens_details", "reasoning_tokens"),
}


def requested() -> dict[str, Any]:
    """Return the model and provider of the current task's call."""
    run, agent = current_run.get(), active_sdk_agent.get()
    config = None if run is None else run.run_config
    model = getattr(config, "model", None) or getattr(agent, "model", None)
    found: dict[str, Any] = {}
    if run is not None and run.is_streamed:
        found[names.REQUEST_STREAM] = True
    if isinstance(model, str):
        found[names.REQUEST_MODEL] = name_value(model)
    elif isinstance(model, Model):
        found |= _known(origin_of(unwrapped(model)))
    return found


@lru_cache(maxsize=256)
def _known(origin: ModelOrigin) -> dict[str, Any]:
    return {names.REQUEST_MODEL: text_value(origin.model), **_served(origin.base_url, origin.provider)}


def of_generation(data: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """Return the request attributes of a ``generation`` span."""
    found: dict[str, Any] = {}
    model, config = data.get("model"), data.get("model_config")
    if isinstance(model, str) and model:
        found[names.REQUEST_MODEL] = name_value(model)
    if not isinstance(config, dict):
        return found
    url = config.get("base_url")
    if url and names.PROVIDER not in known:
        found |= _served(str(url), None)
    return found | _settings(config)


def of_response(response: Any) -> dict[str, Any]:
    """Return the attributes of a Responses API answer, unless withheld."""
    if response is None:
        return {}
    found = _settings({name: getattr(response, name, None) for name in names.REQUEST_SETTINGS})
    if response.id:
        found[names.RESPONSE_ID] = text_value(response.id)
    if response.model:
        found[names.RESPONSE_MODEL] = text_value(response.model)
    found[names.FINISH_REASONS] = [finish_reason(response)]
    return found


def tokens(usage: Any) -> dict[str, int] | None:
    """Return the tokens by attribute, if reported."""
    if not isinstance(usage, dict):
        return None
    found = {
        names.INPUT_TOKENS: usage.get("input_tokens"),
        names.OUTPUT_TOKENS: usage.get("output_tokens"),
    }
    for name, (details, key) in _DETAILS.items():
        parts = usage.get(details)
        if isinstance(parts, dict) and parts.get(key):
            found[name] = parts[key]
    counts = {name: count for name, count in found.items() if isinstance(count, int)}
    return counts or None


def _settings(given: dict[str, Any]) -> dict[str, Any]:
    return {
        attribute: attribute_value(given[name])
        for name, attribute in names.REQUEST_SETTINGS.items()
        if isinstance(given.get(name), (int, float))
    }


@lru_cache(maxsize=256)
def _located(url: str) -> tuple[str | None, int | None]:
    parts = urlsplit(url)
    if not parts.hostname:
        return None, None
    return parts.hostname, parts.port or (80 if parts.scheme == "http" else 443)


def _served(url: str, provider: str | None) -> dict[str, Any]:
    host, port = _located(url)
    if provider is not None:
        provider = names.PROVIDERS.get(provider, provider)
    elif host is not None:
        ends = (known for end, known in names.HOSTS.items() if host == end or host.endswith(f".{end}"))
        provider = next(ends, None)
    found: dict[str, Any] = {names.PROVIDER: provider or names.UNKNOWN_PROVIDER}
    if host is not None:
        found |= {names.SERVER_ADDRESS: host, names.SERVER_PORT: port}
    return found
