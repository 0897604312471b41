"""Recognises errors that every other run would have too."""

from __future__ import annotations

from typing import Final

import httpx
import openai

from kantan_agents.errors import ModelNotConfiguredError, ModelNotFoundError, ProviderRequestError

_NO_ACCESS: Final = (401, 403, 404)


def is_fatal(error: Exception | None) -> bool:
    """Return whether every other run would have this error too: no server, no access, or no such model."""
    if isinstance(error, openai.APITimeoutError):  # the next request may be in time
        return False
    kinds = (ModelNotConfiguredError, ModelNotFoundError, openai.APIConnectionError, httpx.ConnectError)
    status = error.status if isinstance(error, ProviderRequestError) else getattr(error, "status_code", None)
    return isinstance(error, kinds) or status in _NO_ACCESS
