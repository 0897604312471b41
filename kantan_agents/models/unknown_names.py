"""What may have been meant by a model name that nothing can resolve."""

from __future__ import annotations

from typing import Final

from kantan_agents.support.nearest import nearest

_PROVIDERS: Final = ("openai", "google", "anthropic", "openrouter", "ollama", "lmstudio", "compat")
_BEGINNINGS: Final = ("gpt", "chatgpt", "codex", "gemini", "claude")
_SHORT: Final = {"sonnet": "claude-sonnet-...", "opus": "claude-opus-...", "haiku": "claude-haiku-..."}


def hint_for(name: str) -> str:
    """Return a sentence about the nearest names that can be resolved."""
    provider, slash, model = name.strip().partition("/")
    listed = ", ".join(f"{known}/" for known in _PROVIDERS)
    if slash and provider == "azure":
        return "Pass an AsyncAzureOpenAI client: agents.set_default_openai_client(client), or in a bundle."
    if slash:
        near = nearest(provider, _PROVIDERS)
        meant = f"{near}/{model}" if near else f"openrouter/{name.strip()}"
        return f"The nearest name is {meant}. The providers are {listed}."
    beginning, dash, rest = name.strip().partition("-")
    near = nearest(beginning, _BEGINNINGS) if dash else None
    if near is not None and near != beginning.lower():
        return f"The nearest name is {near}-{rest}."
    meant = _SHORT.get(name.strip().lower(), "")
    if meant:
        return f"The nearest name is {meant}, with the version."
    shown = name.strip() or "NAME"
    return (
        f"Write the provider in front of the name, such as ollama/{shown}, openrouter/{shown} or "
        f"compat/{shown}, or pass a client of the provider as model."
    )
