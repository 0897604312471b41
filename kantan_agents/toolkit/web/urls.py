"""Checks the URLs to fetch."""

from __future__ import annotations

import httpx

from kantan_agents.errors import URLRejectedError
from kantan_agents.tool_rules.paths_and_hosts import canonical_host

_LONGEST = 4000
_HIGHEST_PORT = 65_535


def checked_url(text: str) -> httpx.URL:
    """Return a parsed URL with its host in the form of ``host_of``.

    Raises E171 for passwords, and for URLs that other programs could read as another one.
    """
    reason, url = _read(text)
    if url is None:
        raise URLRejectedError(url=text[:200], reason=reason)
    return url


def host_of(text: str) -> str | None:
    """Return the host of a URL in lower-case ASCII, without port, or None."""
    url = _read(text)[1]
    return None if url is None else url.raw_host.decode("ascii")


def _read(text: str) -> tuple[str, httpx.URL | None]:
    if len(text) > _LONGEST:
        return f"it is longer than {_LONGEST} characters", None
    if not text.isprintable() or " " in text or "\\" in text:
        return r"it must not hold white space, control characters or \\".replace(r"\\", "\\"), None
    try:
        url = httpx.URL(text)
        given = url.raw_host.decode("ascii")
    except (httpx.InvalidURL, UnicodeError, ValueError) as error:
        return f"it is not a URL ({error})", None
    if url.scheme not in ("http", "https"):
        return "it must begin with http:// or https://", None
    if url.port is not None and not 0 < url.port <= _HIGHEST_PORT:
        return "its port is not one", None
    if url.userinfo:
        return "it must not hold a user name or password", None
    host = canonical_host(given)
    if host is None:
        return "its host is not a name or an address", None
    return "", url if host == given else url.copy_with(host=host)
