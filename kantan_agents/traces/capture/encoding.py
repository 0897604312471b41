"""Encodes any value as JSON: one odd value must not cost a whole record."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

_DEEPEST = 100


def encoder(hook: Callable[[Any], Any]) -> Callable[[Any], bytes]:
    """Return an encoder; ``hook`` converts other types, or raises TypeError."""
    encode = msgspec.json.Encoder(enc_hook=hook).encode

    def encode_any(value: Any) -> bytes:
        try:
            return encode(value)
        except Exception:  # noqa: BLE001 - half a surrogate pair, odd keys, a value without JSON
            return json.dumps(_plain(value, hook, ()), default=str, allow_nan=False).encode()

    return encode_any


def _plain(value: Any, hook: Callable[[Any], Any], parents: tuple[int, ...]) -> Any:
    if value is None or isinstance(value, (str, int, bool)):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else None  # JSON has no NaN and no infinity
    if isinstance(value, msgspec.Raw):
        return json.loads(bytes(value))
    if id(value) in parents or len(parents) > _DEEPEST:
        return "..."
    path = (*parents, id(value))
    if isinstance(value, dict):
        return {str(key): _plain(inner, hook, path) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner, hook, path) for inner in value]
    try:
        return _plain(hook(value), hook, path)
    except Exception:  # noqa: BLE001 - the conversion is user code
        return f"<{type(value).__name__}>"
