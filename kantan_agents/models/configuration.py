"""Environment variables of model providers."""

from __future__ import annotations

import os
import re
from typing import Any, Final
from urllib.parse import urlsplit

import attrs
from kantan_llm.errors import MissingConfigError
from kantan_llm.providers import resolve_provider_config
from kantan_llm.resolver import ResolvedLLM

from kantan_agents.errors import ModelNotConfiguredError

_QUOTES: Final = "\"'"
_SHOWN: Final = 100
_CREDENTIALS: Final = re.compile(r"//[^/]*@")
_USUAL_URLS: Final = {
    "OLLAMA_BASE_URL": "http://127.0.0.1:11434/v1",
    "LMSTUDIO_BASE_URL": "http://127.0.0.1:1234/v1",
}
_DOTENV: Final = "A .env file is not read by itself."


@attrs.frozen
class Variables:
    """The environment variables of a provider.

    ``needs_url``: it lacks a default URL.
    """

    key: str
    url: str | None = None
    needs_url: bool = False

    @property
    def deciding(self) -> str:
        """The variable that the provider requires."""
        return self.url if self.needs_url and self.url is not None else self.key


ANTHROPIC: Final = Variables("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")
"""``AnthropicProvider``'s variables."""

OPENAI: Final = Variables("OPENAI_API_KEY", "OPENAI_BASE_URL")
_BY_PROVIDER: Final = {
    "openai": OPENAI,
    "anthropic": Variables("CLAUDE_API_KEY", "CLAUDE_BASE_URL"),
    "google": Variables("GOOGLE_API_KEY", "GOOGLE_BASE_URL"),
    "openrouter": Variables("OPENROUTER_API_KEY"),
    "compat": Variables("KANTAN_LLM_API_KEY", "KANTAN_LLM_BASE_URL", needs_url=True),
    "lmstudio": Variables("KANTAN_LLM_API_KEY", "LMSTUDIO_BASE_URL", needs_url=True),
    "ollama": Variables("KANTAN_LLM_API_KEY", "OLLAMA_BASE_URL", needs_url=True),
}
"""By kantan-llm's provider name."""

LOCAL_URLS: Final = {
    provider: _BY_PROVIDER[provider].url or "" for provider in ("ollama", "lmstudio", "compat")
}
"""The URL variables of providers without a default URL."""

PROVIDERS: Final = (("anthropic", ANTHROPIC), *_BY_PROVIDER.items())
"""Providers by prefix of their model names; Anthropic has two."""


def url_of(provider: str) -> str | None:
    """Return a provider's URL, if known."""
    try:
        return resolve_provider_config(provider=provider, api_key=None, base_url=None).base_url
    except MissingConfigError:
        return None


def not_configured(model: str, error: Exception) -> ModelNotConfiguredError:
    """Return the error for a missing key or URL."""
    context: Any = getattr(error, "kantan_llm_context", None)
    provider = context.get("provider") if isinstance(context, dict) else None
    variables = _BY_PROVIDER.get(str(provider))
    if variables is None:
        return ModelNotConfiguredError(model=model, variable=None, reason=str(error))
    return missing(model, variables)


def missing(model: str, variables: Variables) -> ModelNotConfiguredError:
    """Return the error for a missing variable."""
    variable = variables.deciding
    state = "is empty" if variable in os.environ else "is not set"
    if variables.needs_url:
        usual = _USUAL_URLS.get(variable, "http://127.0.0.1:8000/v1")
        example = f"Set it to the URL of the server, such as {usual}. {_DOTENV}"
    else:
        example = (
            f"Set it to your API key, for example with `export {variable}=...`, or pass a client that has a "
            f"key as `model`. {_DOTENV}"
        )
    reason = f"the environment variable {variable} {state}. {example}"
    return ModelNotConfiguredError(model=model, variable=variable, reason=reason)


def check_resolved(model: str, resolved: ResolvedLLM) -> None:
    """Raise E47 for an unusable key or URL."""
    variables = _BY_PROVIDER.get(resolved.provider)
    if variables is not None:
        check_key(model, variables.key, resolved.api_key)
        if resolved.base_url is not None and variables.url is not None:
            check_url(model, variables.url, resolved.base_url)


def check_key(model: str, variable: str, key: str) -> None:
    """Raise E47 if a header cannot carry the key."""
    if not key.strip():
        wrong = "is blank"
    elif key != key.strip():
        wrong = "begins or ends with white space or a line end"
    elif not key.isascii() or not key.isprintable() or " " in key:
        wrong = "contains a space or another character that no key has"
    elif key[0] in _QUOTES and key[-1] == key[0]:
        wrong = "is in quotes, which are part of the value"
    else:
        return
    reason = f"the environment variable {variable} {wrong}. Set it to the API key alone."
    raise ModelNotConfiguredError(model=model, variable=variable, reason=reason)


def check_url(model: str, variable: str, url: str) -> None:
    """Raise E47 if a base URL is invalid."""
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and url.isprintable()
        _ = parts.port
    except ValueError:
        is_url = False
    if is_url and " " not in url:
        return
    given = _CREDENTIALS.sub("//***@", os.environ.get(variable, url))[:_SHOWN]
    reason = f"the environment variable {variable} must be an http(s) URL, not {given!r}"
    raise ModelNotConfiguredError(model=model, variable=variable, reason=reason)
