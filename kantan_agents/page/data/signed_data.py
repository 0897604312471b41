"""Values that need the server's secret."""

from __future__ import annotations

import base64
import binascii
import hmac
from typing import Any, Final

import msgspec

_LENGTH: Final = 16


def token_of(secret: bytes) -> str:
    """The token of a page."""
    return _mark(secret, b"token", b"")


def name_of(secret: bytes, *parts: Any) -> str:
    """A name that reveals nothing about its parts."""
    return _mark(secret, b"name", msgspec.json.encode(parts))[:_LENGTH]


def sign(secret: bytes, data: Any) -> str:
    """Sign JSON data."""
    packed = msgspec.json.encode(data)
    return f"{base64.urlsafe_b64encode(packed).decode()}.{_mark(secret, b'receipt', packed)}"


def signed_data(secret: bytes, text: Any) -> Any:
    """None if it was not signed with this secret."""
    packed, _, mark = text.partition(".") if isinstance(text, str) else ("", "", "")
    try:
        data = base64.b64decode(packed, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    is_own = hmac.compare_digest(mark.encode("utf-8", "replace"), _mark(secret, b"receipt", data).encode())
    return msgspec.json.decode(data) if is_own else None


def _mark(secret: bytes, purpose: bytes, data: bytes) -> str:
    return hmac.digest(secret, purpose + b"\0" + data, "sha256").hex()
