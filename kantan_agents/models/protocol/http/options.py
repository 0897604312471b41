"""Checks options of the HTTP providers (E75)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import httpx

from kantan_agents.errors import InvalidOptionError

_MINUTE = 60
_DAY = 86_400


def api_key_from(api_key: Any, *variables: str) -> str:
    """Return the key or the first set variable."""
    if api_key is None:
        api_key = next((os.environ[name] for name in variables if os.environ.get(name)), None)
    if api_key is None:
        reason = f"is needed: give it, or set {' or '.join(variables)}"
        raise InvalidOptionError(option="api_key", reason=reason)
    if not isinstance(api_key, str) or not api_key.isascii() or not api_key.isprintable() or " " in api_key:
        raise InvalidOptionError(option="api_key", reason="must be a text of visible ASCII characters")
    return api_key


def checked_model(model: Any) -> str:
    """Return a model's name."""
    if not isinstance(model, str) or not model.strip() or ".." in model or not model.isprintable():
        raise InvalidOptionError(option="model", reason=f"must be the name of a model, not {model!r}"[:300])
    return model


def checked_url(base_url: Any) -> str:
    """Return an http(s) URL without a trailing slash."""
    try:
        url = httpx.URL(base_url)
        is_url = url.scheme in ("http", "https") and bool(url.host)
    except (httpx.InvalidURL, TypeError):
        is_url = False
    if not is_url:
        raise InvalidOptionError(option="base_url", reason=f"must be an http(s) URL, not {base_url!r}"[:300])
    return str(base_url).rstrip("/")


def checked_bool(option: str, value: Any) -> bool:
    """Return a bool option."""
    if not isinstance(value, bool):
        raise InvalidOptionError(option=option, reason=f"must be True or False, not {value!r}"[:300])
    return value


def checked_cache_seconds(seconds: Any) -> float:
    """Return 60 to 86,400 seconds."""
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not (is_number and _MINUTE <= seconds <= _DAY):
        reason = f"must be a number from {_MINUTE} to {_DAY}, not {seconds!r}"[:300]
        raise InvalidOptionError(option="cache_seconds", reason=reason)
    return float(seconds)


def checked_timeout(timeout: Any) -> float | None:
    """Return a timeout: seconds above 0, or None."""
    is_number = isinstance(timeout, (int, float)) and not isinstance(timeout, bool)
    if timeout is not None and not (is_number and timeout > 0):
        raise InvalidOptionError(option="timeout", reason=f"must be seconds above 0 or None, not {timeout!r}")
    return None if timeout is None else float(timeout)


def read_tool_choice(settings: Mapping[str, Any], tools: Mapping[str, Any]) -> str | None:
    """Return ``tool_choice`` or None; E75 for a hosted or unknown tool."""
    choice = settings.get("tool_choice")
    if choice is None:
        return None
    if isinstance(choice, str) and (choice in ("auto", "none", "required") or choice in tools):
        return choice
    reason = f"must be auto, none, required or one of {', '.join(tools)}, not {choice!r}"
    raise InvalidOptionError(option="tool_choice", reason=reason[:500])


def stop_sequences(settings: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return ``stop`` under the API's name."""
    stop = (settings.get("extra_args") or {}).get("stop")
    if stop is None:
        return {}
    return {name: [stop] if isinstance(stop, str) else list(stop)}
