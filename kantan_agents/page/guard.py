"""``RequestGuard``: rejects requests from other sites and unauthorized users.

A page on another site can send requests to 127.0.0.1, and with a name that resolves to it also read the
answers. So the browser must state that a request comes from this page, and a local page has few host names.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kantan_agents.support.log import get_logger
from kantan_agents.support.request_checks import has_one_host, has_other_origin, says_other_site

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Loads only the page's files; no script in the markup runs, and no script parses markup."""

HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

_OTHER_HOST: Final = "refused: this page has another host name; traces_app(hosts=[...]) gives it one"
_OTHER_SITE: Final = "refused: the request comes from another site"
_POLICY_VIOLATION: Final = 1008

_log = get_logger("kantan_agents.page")


class RequestGuard:
    """The outermost middleware. A proxy in front of it must pass on the header ``Host``.

    Without ``accepts_host``, any host is accepted, in a service that decides with ``authorize``.
    ``follows_links``: links on other sites may lead to the page.
    """

    def __init__(
        self,
        app: ASGIApp,
        authorize: Callable[[HTTPConnection], Awaitable[bool]],
        accepts_host: Callable[[str], bool] | None,
        *,
        follows_links: bool,
    ) -> None:
        self._app = app
        self._authorize = authorize
        self._accepts_host = accepts_host
        self._follows_links = follows_links

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            # The page has no WebSocket, and a later one must not be open to other sites.
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
            return
        connection = HTTPConnection(scope)
        reason = self._refusal(connection) or await self._unauthorized(connection)
        if reason is not None:
            await PlainTextResponse(reason, HTTPStatus.FORBIDDEN)(scope, receive, _guarded(send))
            return
        await self._app(scope, receive, _guarded(send))

    def _refusal(self, connection: HTTPConnection) -> str | None:
        if not has_one_host(connection.headers.getlist, self._accepts_host):
            return _OTHER_HOST
        if says_other_site(connection.headers.getlist):
            return None if self._follows_links and _follows_a_link(connection) else _OTHER_SITE
        if has_other_origin(connection.headers.getlist):
            return _OTHER_SITE
        return None

    async def _unauthorized(self, connection: HTTPConnection) -> str | None:
        try:
            if await self._authorize(connection) is True:
                return None
        except Exception as error:  # noqa: BLE001 - after any failure, the request is not authorized
            _log.warning("a request was refused because authorize raised", error=type(error).__name__)
        return "refused: you may not see this page"


def _follows_a_link(connection: HTTPConnection) -> bool:
    """Whether a window opens the page itself, as by a link in a ticket: that site sees nothing."""
    scope, headers = connection.scope, connection.headers
    opens = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    path = scope["path"].removeprefix(scope.get("root_path", ""))
    return opens and scope["method"] == "GET" and path in ("", "/") and "origin" not in headers


def _guarded(send: Send) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            # After an upgrade of this library, a browser must load the new version of a script.
            headers.setdefault("Cache-Control", "no-cache")
        await send(message)

    return guarded
