"""The page's socket."""

from __future__ import annotations

import errno
import os
import socket
from typing import Final
from urllib.parse import quote

import attrs

from kantan_agents.errors import InvalidOptionError
from kantan_agents.support.arguments import shown
from kantan_agents.support.request_checks import is_remote

LOOPBACK: Final = "127.0.0.1"
_HTTP: Final = 80
_MOST_PORTS: Final = 65_535


@attrs.frozen
class ListeningPlace:
    """A listening socket on the user's host."""

    listener: socket.socket
    host: str
    port: int

    @property
    def address(self) -> str:
        """Such as ``http://127.0.0.1:4711/``."""
        # A socket on all addresses has no specific one.
        host = (socket.gethostname() if is_remote(self.host) else LOOPBACK) if self._is_any else self.host
        return f"http://{self._netloc(host)}/"

    def address_for(self, token: str, trace_id: str | None) -> str:
        """The URL to open."""
        run = "" if trace_id is None else f"#/run/{quote(trace_id, safe='')}"
        return f"{self.address}?token={quote(token, safe='')}{run}"

    @property
    def hosts(self) -> frozenset[str] | None:
        """Return accepted values of ``Host``; None on all addresses, whose names are unknown.

        A token is required, and a browser sends its cookie only to the name that set it.
        """
        if self._is_any:
            return None
        names = {LOOPBACK, "localhost", "::1", self.host.lower()}
        bare = {_bracketed(name) for name in names} if self.port == _HTTP else set()
        return frozenset({self._netloc(name) for name in names} | bare)

    def accepts(self, host: str) -> bool:
        """Whether a ``Host`` leads here."""
        return self.hosts is None or host.lower() in self.hosts

    @property
    def _is_any(self) -> bool:
        return self.host in ("", "0.0.0.0", "::")  # noqa: S104 - compared, not bound

    def _netloc(self, host: str) -> str:
        return f"{_bracketed(host)}:{self.port}"


def listen(host: str, port: int) -> ListeningPlace:
    """Port 0 is a free one; E75 if that is impossible."""
    if not 0 <= port <= _MOST_PORTS:
        raise InvalidOptionError(option="--port", reason=f"must be from 1 to {_MOST_PORTS:,}, not {port}")
    try:
        found = socket.getaddrinfo(
            LOOPBACK if host.lower() == "localhost" else host, port, type=socket.SOCK_STREAM
        )
        family, _, _, _, bound = found[0]
        listener = socket.create_server(bound[:2], family=family)
    except (OSError, UnicodeError) as error:
        raise _unusable(host, port, error) from error
    return ListeningPlace(listener, host, listener.getsockname()[1])


def _unusable(host: str, port: int, error: Exception) -> InvalidOptionError:
    number = getattr(error, "errno", None)
    if number == errno.EADDRINUSE:
        reason = (
            f"{port} is used by another program; name another port, or leave the option out for a free one"
        )
        return InvalidOptionError(option="--port", reason=reason)
    if number == errno.EACCES:
        reason = f"{port} is not allowed for this user; name one above 1023, or leave the option out"
        return InvalidOptionError(option="--port", reason=reason)
    why = "it is not an address of this machine" if isinstance(error, (socket.gaierror, UnicodeError)) else ""
    why = why or (os.strerror(number) if isinstance(number, int) else str(error))
    return InvalidOptionError(option="--host", reason=f"{shown(host)} cannot be used: {why}")


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
