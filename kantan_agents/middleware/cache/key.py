"""``request_key``: what a model is asked, as a hash that equal requests have in common."""

from __future__ import annotations

import secrets
from typing import Any, Final

import msgspec
from agents import Model

from kantan_agents.agent.bridge.captured.definitions import GENERATED_CACHE_KEY, jsonable
from kantan_agents.agent.bridge.captured.models import shared_model
from kantan_agents.agent.bridge.captured.request_data import unredacted_request
from kantan_agents.core.interception import ModelCall
from kantan_agents.middleware.keys import Key
from kantan_agents.models.origin import origin_of
from kantan_agents.models.structured.requests.request import Request
from kantan_agents.traces.capture.canonical import digest

VERSION: Final = 1
"""Part of each key. Another way to compute keys needs another version."""

_PROCESS: Final = secrets.token_hex(8)
_PROMPT_KEY: Final = "prompt_cache_key"

# Unlike that of records, it raises for a value that JSON does not have: its text need not tell it apart.
_encode: Final = msgspec.json.Encoder(enc_hook=jsonable, order="sorted").encode


def request_key(call: ModelCall, request: Request, model: Model, tenant: Key) -> str:
    """Return the key of a request, 64 hexadecimal digits.

    It covers the model, its provider and URL, the instructions, the conversation, the settings, the tools,
    the hand-offs, the output schema, and whose the request is.

    Raises:
        TypeError, ValueError, OverflowError, RecursionError: The request has something that JSON does not
            have, so that it cannot be distinguished from others.
    """
    asked = unredacted_request(call, request, model)
    asked["settings"] = _without_generated(asked["settings"])
    whose = [VERSION, type(tenant).__name__, str(tenant)]
    where = _PROCESS if origin_of(model).is_instance else ""
    return digest(_encode([whose, where, msgspec.Raw(shared_model(model).packed), asked])).hex()


def _without_generated(settings: dict[str, Any]) -> dict[str, Any]:
    arguments: Any = settings.get("extra_args")
    key = arguments.get(_PROMPT_KEY) if isinstance(arguments, dict) else None
    if not isinstance(key, str) or not key.startswith(GENERATED_CACHE_KEY):
        return settings
    left = {name: value for name, value in arguments.items() if name != _PROMPT_KEY}
    return {**settings, "extra_args": left or None}
