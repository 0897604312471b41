"""Fast JSON encoding that accepts any value: one odd value must not cost a whole span."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from json import encoder
from typing import Any

import msgspec

from kantan_agents.traces.metadata import finite

_LONGEST_INT = 10_000

_SAMPLE = {"a": [None, True, 1, 0.5, "é\n"], "b": {}}


def _refuse(value: Any) -> Any:
    raise TypeError(f"{type(value).__name__} cannot be encoded as JSON")


def _encoder(*, allow_nan: bool, default: Callable[[Any], Any] = str) -> Callable[[Any], str]:
    """Return an encoder of kantan-llm's unescaped JSON.

    ``json`` creates its C encoder for each value, which takes as long as encoding a small span. This creates
    it once, if it behaves as in today's Python versions.
    """
    plain = json.JSONEncoder(ensure_ascii=False, default=default, allow_nan=allow_nan)
    make: Any = getattr(encoder, "c_make_encoder", None)
    try:
        # Without tracking of cycles; a cycle raises RecursionError.
        encode_parts = make(
            None,
            default,
            encoder.encode_basestring,
            None,
            ": ",
            ", ",
            False,
            False,
            allow_nan,
        )
        is_as_expected = "".join(encode_parts(_SAMPLE, 0)) == plain.encode(_SAMPLE)
    except TypeError:
        is_as_expected = False
    return (lambda value: "".join(encode_parts(value, 0))) if is_as_expected else plain.encode


encode = _encoder(allow_nan=True)
encode_finite = _encoder(allow_nan=False)
encode_strictly = _encoder(allow_nan=True, default=_refuse)


_decode = msgspec.json.Decoder().decode

encode_texts = msgspec.json.Encoder(enc_hook=_refuse).encode
"""Encode strings, integers and containers of them, three times as fast as ``encode``.

Other values differ, such as floats with an exponent, bytes and dates.
"""


def spaced(packed: bytes) -> str:
    """Add the whitespace of ``encode``."""
    return msgspec.json.format(packed, indent=0).decode()


def decode(text: str | bytes) -> Any:
    """Decode JSON; accept NaN and half a surrogate pair, as Python's ``json`` does."""
    try:
        return _decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError):
        return json.loads(text)


def encode_indented(value: Any) -> str:
    """Encode standard JSON with an indent of two, much faster than ``json.dumps``."""
    return msgspec.json.format(encode(value), indent=2)


def encode_metadata(metadata: Any) -> str:
    """Encode metadata, with null for NaN, which would fail every metadata search."""
    try:
        return encode_finite(metadata)
    except Exception:  # noqa: BLE001 - NaN, or a value that JSON does not have
        return encode_anything(finite(metadata))


def encode_anything(value: Any) -> str:
    """Encode ``value``; other types become strings."""
    try:
        return encode(value)
    except Exception:  # noqa: BLE001 - keys that are not strings, cycles, a raising __str__
        return encode(_plain(value, ()))


def _plain(value: Any, parents: tuple[int, ...]) -> Any:
    if value is None or isinstance(value, (str, float)):
        return value
    if isinstance(value, int):
        # Python does not convert longer integers to decimal.
        return value if value.bit_length() < _LONGEST_INT else hex(value)
    if id(value) in parents:
        return "..."
    path = (*parents, id(value))
    if isinstance(value, Mapping):
        return {_text(key): _plain(inner, path) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner, path) for inner in value]
    return _text(value)


def _text(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - __str__ is user code
        return f"<{type(value).__name__}>"
