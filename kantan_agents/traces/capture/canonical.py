"""Canonical JSON and its hash, the same for equal content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import msgspec

_sorted = msgspec.json.Encoder(order="sorted").encode
_in_order = msgspec.json.Encoder().encode


def canonical(value: Any) -> bytes:
    """Encode with sorted keys: equal data give equal bytes.

    Half a surrogate pair, which UTF-8 cannot encode, is escaped.
    """
    try:
        return _sorted(value)
    except (ValueError, OverflowError):  # half a surrogate pair, or an integer of more than 64 bits
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def ordered(value: Any) -> bytes:
    """Encode with the given order of keys.

    It counts in tool rules: of several that a call breaks, the first gives the error.
    """
    try:
        return _in_order(value)
    except (ValueError, OverflowError):
        return json.dumps(value, separators=(",", ":")).encode()


def copied(value: Any) -> Any:
    """Deep-copy JSON data."""
    return decode(ordered(value))


def digest(canonical_json: bytes) -> bytes:
    """Return the SHA-256 of canonical JSON, 32 bytes."""
    return hashlib.sha256(canonical_json).digest()


def content_hash(value: Any) -> str:
    """Return the SHA-256 of canonical JSON in hexadecimal."""
    return digest(canonical(value)).hex()


def in_common(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    """Return the length of the common prefix."""
    if other[: len(one)] == one:
        return len(one)  # as in most conversations
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def decode(text: str | bytes) -> Any:
    """Decode JSON; accept half a surrogate pair, as Python's ``json`` does."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError):
        return json.loads(text)
