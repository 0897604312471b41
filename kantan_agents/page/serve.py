"""Serves the page to users with a token."""

from __future__ import annotations

import secrets
from http import HTTPStatus
from typing import Final, cast

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from kantan_agents.page.app import guarded_app
from kantan_agents.page.guard import RequestGuard
from kantan_agents.page.listening import ListeningPlace
from kantan_agents.page.state import PageState
from kantan_agents.support.request_checks import bearer_of, is_token

_PATIENCE: Final = 0.5
"""Seconds for open requests when the server stops."""

_REFUSED: Final = "refused: open the address with the token that the command has printed"
_USED: Final = (
    "refused: this address works once, and it was used already. If that was not your browser, somebody else "
    "has opened the page: end the command. Otherwise open the address that it has printed"
)


def local_app(state: PageState, place: ListeningPlace, token: str, ticket: str | None = None) -> Starlette:
    """Return the page; requests need the token, or once the ticket, and an accepted host name."""
    return guarded_app(
        state,
        Middleware(
            RequestGuard,
            authorize=_everybody,
            accepts_host=place.accepts,
            follows_links=place.hosts is None,
        ),
        Middleware(TokenGate, token=token, cookie=f"kantan_agents_{place.port}", ticket=ticket),
    )


def serve(app: Starlette, place: ListeningPlace) -> None:
    """Serve until SIGINT, which raises KeyboardInterrupt, or SIGTERM."""
    config = uvicorn.Config(
        app,
        access_log=False,  # a token may be in a URL
        lifespan="off",
        log_config=None,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=cast("int", _PATIENCE),  # asyncio takes a float too
        ws="none",
    )
    uvicorn.Server(config).run(sockets=[place.listener])


async def _everybody(_: HTTPConnection) -> bool:
    return True


class TokenGate:
    """Middleware that rejects requests without a token.

    A person opens the page once with ``?token=``; the browser gets a cookie and a URL without the token, so
    that it is neither in the history nor in screenshots. The cookie is random, ends with the process, and
    does not reveal the token. A browser sends it to all ports of a host, so two pages need two names.

    The ticket is accepted once. It may be in the command line of a browser, which others can see: if someone
    uses it first, the browser is rejected, so the user notices.
    """

    def __init__(self, app: ASGIApp, token: str, cookie: str, ticket: str | None = None) -> None:
        self._app = app
        self._token = token.encode()
        self._ticket = None if ticket is None else ticket.encode()
        self._is_used = False
        self._name = cookie
        self._cookie = secrets.token_urlsafe()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = QueryParams(scope["query_string"]).getlist("token")
        # With HEAD, a program may check a URL before it passes it to a browser.
        if given and scope["path"] == "/" and scope["method"] == "GET":
            is_known = len(given) == 1 and self._takes(given[0].encode())
            refusal = _refused(_USED if self._was_used(given[0].encode()) else _REFUSED)
            await (self._let_in() if is_known else refusal)(scope, receive, send)
        elif self._may_pass(HTTPConnection(scope)):
            await self._app(scope, receive, send)
        else:
            await _refused()(scope, receive, send)

    def _takes(self, given: bytes) -> bool:
        if self._ticket is not None and not self._is_used and secrets.compare_digest(given, self._ticket):
            self._is_used = True
            return True
        return secrets.compare_digest(given, self._token)

    def _was_used(self, given: bytes) -> bool:
        return self._is_used and self._ticket is not None and secrets.compare_digest(given, self._ticket)

    def _may_pass(self, connection: HTTPConnection) -> bool:
        given = bearer_of(connection.headers.get("authorization", ""))
        if given is not None:
            return is_token(given, self._token.decode())
        cookie = connection.cookies.get(self._name, "")
        return secrets.compare_digest(cookie.encode(), self._cookie.encode())

    def _let_in(self) -> Response:
        response = RedirectResponse("/", HTTPStatus.SEE_OTHER, {"Cache-Control": "no-store"})
        response.set_cookie(self._name, self._cookie, path="/", httponly=True, samesite="strict")
        return response


def _refused(text: str = _REFUSED) -> Response:
    headers = {"WWW-Authenticate": "Bearer", "Cache-Control": "no-store"}
    return PlainTextResponse(text, HTTPStatus.UNAUTHORIZED, headers)
