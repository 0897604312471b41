"""OpenAI models that follow ``agents.set_default_openai_client``, ``..._key`` and ``..._api``.

Read at each call: programs often set them after they import their agents.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from agents import Model

# Private: the SDK has no public getters for these defaults.
from agents.models import _openai_shared as sdk_defaults
from kantan_llm import AsyncClientBundle
from kantan_llm.providers import split_model_prefix
from kantan_llm.resolver import ResolvedLLM
from openai import AsyncOpenAI

from kantan_agents.models.client_pool import OPENAI, ApiClients, ClientPool, sdk_model

_NAMES: Final = re.compile(
    r"gpt-(?!oss)|chatgpt-|o\d+(?:-|$)|codex-|computer-use-|text-embedding-|ft:", re.IGNORECASE
)
"""Prefixes of OpenAI's model names, including fine-tuned ones."""

ELSEWHERE: Final = ("litellm/", "any-llm/")
"""Prefixes of names that the SDK always resolves with other packages."""


@lru_cache(maxsize=512)
def at_openai(name: str) -> str | None:
    """Return OpenAI's name of an OpenAI model, else None."""
    provider, model = split_model_prefix(name.strip())
    if provider == OPENAI or (provider is None and _NAMES.match(model)):
        return model
    return None


def default_key() -> str | None:
    """Return the key of ``set_default_openai_key``."""
    return sdk_defaults.get_default_openai_key()


def uses_responses() -> bool:
    """Return whether the default API is Responses."""
    return sdk_defaults.get_use_responses_by_default()


class DefaultClientModel:
    """Finds a model behind the SDK's default client."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._last: tuple[AsyncOpenAI, bool, Model] | None = None

    def model(self) -> Model:
        """Return the model behind the default client."""
        return self.behind(_default_client())

    def client(self) -> AsyncOpenAI:
        """Return the current default client."""
        client = _default_client()
        self.behind(client)  # prepares the client, as for every model
        return client

    def behind(self, client: AsyncOpenAI) -> Model:
        """Return the model behind this client."""
        uses_responses = sdk_defaults.get_use_responses_by_default()
        last = self._last
        if last is None or last[0] is not client or last[1] is not uses_responses:
            bundle = AsyncClientBundle(client, self._name, OPENAI, str(client.base_url))
            last = self._last = (client, uses_responses, sdk_model(bundle))
        return last[2]


def default_client_model(name: str, *, is_known: bool) -> tuple[str, DefaultClientModel] | None:
    """Return a model's name and its finder behind the SDK's default client, if set.

    A known provider must be OpenAI.
    """
    if sdk_defaults.get_default_openai_client() is None:
        return None
    model = at_openai(name)
    if model is None and not is_known:
        model = name.strip()
    return (model, DefaultClientModel(model)) if model else None


def _default_client() -> AsyncOpenAI:
    client = sdk_defaults.get_default_openai_client()
    if client is None:
        raise RuntimeError("the SDK has lost its default client")
    return client


class OpenAIPool(ClientPool):
    """Holds an OpenAI model for each event loop, while the SDK has no other default."""

    def __init__(self, resolved: ResolvedLLM, clients: ApiClients, again: Callable[[], ClientPool]) -> None:
        super().__init__(resolved, clients)
        self._key = resolved.api_key
        self._again = again
        self._uses_responses = sdk_defaults.get_use_responses_by_default()
        self._behind_default = DefaultClientModel(resolved.model)

    def model(self) -> Model:
        """Return the current SDK model."""
        client = sdk_defaults.get_default_openai_client()
        if client is not None:
            return self._behind_default.behind(client)
        if self._is_replaced():
            return self._again().model()
        return self._models.get()

    def client(self) -> AsyncOpenAI:
        """Return the default client, or the loop's."""
        client = sdk_defaults.get_default_openai_client()
        if client is not None:
            return self._behind_default.client()
        return self._again().client() if self._is_replaced() else super().client()

    def _is_replaced(self) -> bool:
        key = sdk_defaults.get_default_openai_key()
        uses_responses = sdk_defaults.get_use_responses_by_default()
        return (key is not None and key != self._key) or uses_responses is not self._uses_responses
