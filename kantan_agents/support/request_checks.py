"""Whether a server of this library may answer a request: by its bearer token and the site that sent it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Final

from kantan_agents.errors import InvalidOptionError

SHORTEST_TOKEN: Final = 16
_BEARER: Final = "bearer "
_OWN_SITE: Final = frozenset({"same-origin", "none"})  # "none": the address was typed


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


def says_other_site(values: Callable[[str], Sequence[str]]) -> bool:
    """Return whether a browser says, by ``Sec-Fetch-Site``, that another site sends a request.

    Args:
        values: Returns the values of a header.
    """
    return any(site not in _OWN_SITE for site in values("sec-fetch-site"))


def has_other_origin(values: Callable[[str], Sequence[str]]) -> bool:
    """Return whether the header ``Origin`` of a request names another host than it is sent to.

    Args:
        values: Returns the values of a header.
    """
    own = {
        f"{scheme}://{host.lower()}" for host in values("host")[:1] if host for scheme in ("http", "https")
    }
    return any(origin.lower() not in own for origin in values("origin"))
