"""``Guard``: refuses requests of other sites and of people who may not see the page; forbids all else.

A page on another site can send requests to 127.0.0.1, and with a name that it resolves to 127.0.0.1 also read
the answers. So the browser must say that a request comes from this page, and a page of one's own machine has
few names.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kantan_agents.support.log import get_logger

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Nothing is loaded but the page's own files, and no script in the markup runs."""

_HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_OWN_SITE: Final = frozenset({"same-origin", "none"})  # "none": the address was typed

_log = get_logger("kantan_agents.page")


class Guard:
    """The outermost middleware of the page.

    Args:
        app: The application behind it.
        authorize: Whether a request may see the page.
        hosts: The values of ``Host`` that are accepted; None for any, in a service that checks them itself.
    """

    def __init__(
        self,
        app: ASGIApp,
        authorize: Callable[[HTTPConnection], Awaitable[bool]],
        hosts: frozenset[str] | None = None,
    ) -> None:
        self._app = app
        self._authorize = authorize
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        reason = self._refusal(connection) or await self._unauthorized(connection)
        if reason is not None:
            await PlainTextResponse(reason, HTTPStatus.FORBIDDEN)(scope, receive, _guarded(send))
            return
        await self._app(scope, receive, _guarded(send))

    def _refusal(self, connection: HTTPConnection) -> str | None:
        host = connection.headers.get("host", "")
        if self._hosts is not None and host not in self._hosts:
            return "refused: this page has another host name"
        if connection.headers.get("sec-fetch-site", "none") not in _OWN_SITE:
            return "refused: the request comes from another site"
        origin = connection.headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return "refused: the request comes from another site"
        return None

    async def _unauthorized(self, connection: HTTPConnection) -> str | None:
        try:
            if await self._authorize(connection):
                return None
        except Exception as error:  # noqa: BLE001 - whatever fails in it, the request is not authorized
            _log.warning("a request was refused because authorize raised", error=type(error).__name__)
        return "refused: you may not see this page"


def _guarded(send: Send) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
        await send(message)

    return guarded
