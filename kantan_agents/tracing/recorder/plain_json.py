"""JSON text of whatever it is: a span with a strange value in it is still worth having."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from json import encoder
from typing import Any

import msgspec

from kantan_agents.tracing.metadata import finite

_LONGEST_INT = 10_000

_SAMPLE = {"a": [None, True, 1, 0.5, "é\n"], "b": {}}


def _refuse(value: Any) -> Any:
    raise TypeError(f"{type(value).__name__} is no JSON")


def _encoder(*, allow_nan: bool, default: Callable[[Any], Any] = str) -> Callable[[Any], str]:
    """Return a function that writes JSON in kantan-llm's form: no escapes, texts for what JSON lacks.

    ``json`` makes its C encoder anew for each value, which takes as long as encoding a small span. So it is
    made once here, where there is one and it is made as in the Python versions of today.
    """
    plain = json.JSONEncoder(ensure_ascii=False, default=default, allow_nan=allow_nan)
    make: Any = getattr(encoder, "c_make_encoder", None)
    try:
        # No memory of what it is inside of: a cycle ends as RecursionError.
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
"""Return texts, integers and what is made of them as JSON, three times as fast as ``encode``.

A number with an exponent it writes in another form, and bytes or dates, for example, in one of its own.
"""


def spaced(packed: bytes) -> str:
    """Return what ``encode_texts`` returned in the form in which ``encode`` writes it."""
    return msgspec.json.format(packed, indent=0).decode()


def decode(text: str | bytes) -> Any:
    """Return what JSON text holds, also if it has NaN or half a surrogate pair in it as Python's has.

    Raises:
        ValueError, RecursionError: It is no JSON, or too deep.
    """
    try:
        return _decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError):
        return json.loads(text)


def encode_indented(value: Any) -> str:
    """Return ``value`` as ``json.dumps`` writes it with an indent of two, in a fraction of the time.

    Raises:
        Exception: It is no JSON, or not as other languages know it.
    """
    return msgspec.json.format(encode(value), indent=2)


def encode_metadata(metadata: Any) -> str:
    """Return a trace's metadata as JSON text; with a NaN in it, SQLite could search no metadata at all."""
    try:
        return encode_finite(metadata)
    except Exception:  # noqa: BLE001 - a NaN, or whatever is no JSON
        return encode_anything(finite(metadata))


def encode_anything(value: Any) -> str:
    """Return ``value`` as JSON text; what cannot be written as JSON, as text."""
    try:
        return encode(value)
    except Exception:  # noqa: BLE001 - keys that are no texts, cycles, a __str__ that raises
        return encode(_plain(value, ()))


def _plain(value: Any, around: tuple[int, ...]) -> Any:
    if value is None or isinstance(value, (str, float)):
        return value
    if isinstance(value, int):
        # Python refuses to write longer ones in decimal, which takes very long.
        return value if value.bit_length() < _LONGEST_INT else hex(value)
    if id(value) in around:
        return "..."
    inside = (*around, id(value))
    if isinstance(value, Mapping):
        return {_text(key): _plain(inner, inside) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner, inside) for inner in value]
    return _text(value)


def _text(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - it is the user's own code
        return f"<{type(value).__name__}>"
