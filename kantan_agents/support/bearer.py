"""Tokens that programs send as ``Authorization: Bearer``."""

from __future__ import annotations

import secrets
from typing import Final

from kantan_agents.errors import InvalidOptionError

SHORTEST_TOKEN: Final = 16
_BEARER: Final = "bearer "


def bearer_of(authorization: str) -> str | None:
    """Return the token in a header ``Authorization``; None if it has another kind."""
    if not authorization.lower().startswith(_BEARER):
        return None
    return authorization[len(_BEARER) :].strip()


def is_token(given: str, token: str) -> bool:
    """Return whether a token of a header is the right one. How long that takes says nothing about it."""
    return secrets.compare_digest(given.encode("utf-8", "surrogatepass"), token.encode())


def checked_token(token: str, option: str = "token") -> str:
    """Return a token.

    Raises:
        InvalidOptionError: E75, it is too short, or cannot be sent. The message does not contain it.
    """
    if not isinstance(token, str):
        reason = f"must be a str, not {type(token).__name__}"
    elif len(token) < SHORTEST_TOKEN:
        reason = f"must have at least {SHORTEST_TOKEN} characters, not {len(token)}"
    elif not (token.isascii() and token.isprintable()) or " " in token:
        reason = "must be of ASCII characters without spaces, since it is sent in a header"
    else:
        return token
    raise InvalidOptionError(option=option, reason=reason)
