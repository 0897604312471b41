"""Suggestions for unknown model names (E19)."""

from __future__ import annotations

import os
from typing import Final

from kantan_agents.models.configuration import LOCAL_URLS
from kantan_agents.support.nearest import nearest

_PROVIDERS: Final = ("openai", "google", "anthropic", "openrouter", "ollama", "lmstudio", "compat")
_TYPING_ERROR: Final = 2
_BEGINNINGS: Final = ("gpt", "chatgpt", "codex", "gemini", "claude")
_SHORT: Final = {"sonnet": "claude-sonnet-...", "opus": "claude-opus-...", "haiku": "claude-haiku-..."}


def hint_for(name: str) -> str:
    """Return suggested names and their variables."""
    name = name.strip()
    provider, slash, model = name.partition("/")
    if slash and provider == "azure":
        return "Pass an AsyncAzureOpenAI client: agents.set_default_openai_client(client), or in a bundle."
    if slash and not model:
        return f"A name follows the slash: {provider}/NAME."
    near = nearest(provider, _PROVIDERS) if slash else None
    if near and abs(len(near) - len(provider)) <= _TYPING_ERROR:  # not "meta-llama", the maker of a model
        listed = ", ".join(f"{known}/" for known in _PROVIDERS)
        return f"The nearest name is {near}/{model}. The providers are {listed}."
    return f"{_nearest_name(name)}{_with_provider(name or 'NAME')}"


def _nearest_name(name: str) -> str:
    beginning, dash, rest = name.partition("-")
    near = nearest(beginning, _BEGINNINGS) if dash else None
    if near is not None and near != beginning.lower():
        return f"The nearest name is {near}-{rest}. "
    short = _SHORT.get(name.lower())
    return f"The nearest name is {short}, with the version. " if short else ""


def _with_provider(name: str) -> str:
    found = [(provider, url) for provider, url in LOCAL_URLS.items() if os.environ.get(url)]
    if found:
        written = " or ".join(f"{provider}/{name} for the server of {url}" for provider, url in found)
        return f"Write {written}, or openrouter/{name}."
    (provider, url), *others = LOCAL_URLS.items()
    likewise = " or ".join(f"{other}/{name} with {variable}" for other, variable in others)
    return (
        f"For your own server, write {provider}/{name} and set {url} to its URL, or likewise {likewise}. "
        f"For OpenRouter, write openrouter/{name}. Or pass a client of the provider as model."
    )
