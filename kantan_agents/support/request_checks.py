"""Checks of requests."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from typing import Final

from kantan_agents.errors import InvalidOptionError
from kantan_agents.support.arguments import shown

SHORTEST_TOKEN: Final = 16
_BEARER: Final = "bearer "
_HOST: Final = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?")
_OWN_SITE: Final = frozenset({"same-origin", "none"})  # "none": the user typed the URL


def bearer_of(authorization: str) -> str | None:
    """None for another kind than a bearer token."""
    if not authorization.lower().startswith(_BEARER):
        return None
    return authorization[len(_BEARER) :].strip()


def is_token(given: str, token: str) -> bool:
    """Compare a token in constant time."""
    return secrets.compare_digest(given.encode("utf-8", "surrogatepass"), token.encode())


def checked_token(token: str, option: str = "token") -> str:
    """The message of E75 does not contain the token."""
    if not isinstance(token, str):
        reason = f"must be a str, not {type(token).__name__}"
    elif len(token) < SHORTEST_TOKEN:
        reason = f"must have at least {SHORTEST_TOKEN} characters, not {len(token)}"
    elif not (token.isascii() and token.isprintable()) or " " in token:
        reason = "must be of ASCII characters without spaces, since it is sent in a header"
    else:
        return token
    raise InvalidOptionError(option=option, reason=reason)


def is_remote(host: str) -> bool:
    """Anything but a loopback address and ``localhost``."""
    try:
        return not ip_address(host).is_loopback
    except ValueError:
        return host.lower() != "localhost"


def host_check(hosts: Sequence[str] | None, *, only_loopback: bool) -> Callable[[str], bool] | None:
    """Return a function that accepts or rejects a ``Host``; None to accept all.

    A page on another site can send requests to this machine under a name that resolves to 127.0.0.1, and read
    the answers: to the browser, they are its own. ``hosts`` are accepted for all ports or with a port.
    Without them, ``only_loopback`` accepts only this machine's names.
    """
    if hosts is None:
        return _is_loopback if only_loopback else None
    if isinstance(hosts, str) or not isinstance(hosts, Sequence) or not hosts:
        reason = f"must be a list of host names, not {shown(hosts)}"
        raise InvalidOptionError(option="hosts", reason=reason)
    for host in hosts:
        if not isinstance(host, str) or _HOST.fullmatch(host.lower()) is None:
            reason = (
                f"{shown(host)} is not a host name, such as 'traces.example', '[::1]' or 'localhost:8000'"
            )
            raise InvalidOptionError(option="hosts", reason=reason)
    known = frozenset(host.lower() for host in hosts)
    return lambda host: host.lower() in known or _name_of(host) in known


def _is_loopback(host: str) -> bool:
    name = _name_of(host)
    return name is not None and not is_remote(name.strip("[]"))


def _name_of(host: str) -> str | None:
    found = _HOST.fullmatch(host.lower())
    return None if found is None else found["name"]


def has_one_host(values: Callable[[str], Sequence[str]], accepts: Callable[[str], bool] | None) -> bool:
    """Two headers are rejected, because a proxy may use either."""
    found = values("host")
    return accepts is None or (len(found) == 1 and accepts(found[0]))


def says_other_site(values: Callable[[str], Sequence[str]]) -> bool:
    """Whether ``Sec-Fetch-Site`` names another site."""
    return any(site not in _OWN_SITE for site in values("sec-fetch-site"))


def has_other_origin(values: Callable[[str], Sequence[str]]) -> bool:
    """Whether ``Origin`` names another host than ``Host``."""
    own = {
        f"{scheme}://{host.lower()}" for host in values("host")[:1] if host for scheme in ("http", "https")
    }
    return any(origin.lower() not in own for origin in values("origin"))
