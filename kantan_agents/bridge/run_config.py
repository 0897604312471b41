"""The SDK's RunConfig of one run: what the caller gave, merged with ours."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from agents import ModelProvider, MultiProvider, RunConfig

from kantan_agents.errors import InvalidOptionError
from kantan_agents.models import DefaultProvider


def effective_run_config(
    given: RunConfig | dict[str, Any] | None, provider_factory: Callable[[], ModelProvider] | None
) -> RunConfig:
    """Return the RunConfig for one run; the caller's own object is never changed.

    Every field the caller set stays. The model provider is, in this order, the caller's own in
    ``given``, what ``provider_factory`` makes, or the SDK's default one.

    Raises:
        InvalidOptionError: E75, ``given`` is neither a RunConfig nor a dict of its fields.
    """
    if given is None:
        return RunConfig(model_provider=_provider(None, provider_factory))
    if isinstance(given, dict):
        given = RunConfig(**given)
    if not isinstance(given, RunConfig):
        raise InvalidOptionError(
            option="run_config",
            reason=f"must be a RunConfig or a dict of its fields, not {type(given).__name__}",
        )
    provider = _provider(given.model_provider, provider_factory)
    return dataclasses.replace(given, model_provider=provider)


def _provider(given: ModelProvider | None, factory: Callable[[], ModelProvider] | None) -> ModelProvider:
    # A RunConfig made without a provider carries a MultiProvider; it cannot be told from one given.
    if given is not None and type(given) is not MultiProvider:
        return given
    if factory is not None:
        return factory()
    return given or DefaultProvider()
