"""Rejects requests without the token, or from other sites."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kantan_agents.durable.http.answers import HEADERS, refused
from kantan_agents.support.request_checks import (
    bearer_of,
    has_one_host,
    has_other_origin,
    is_token,
    says_other_site,
)

_POLICY_VIOLATION: Final = 1008


class Gate:
    """The outermost middleware; without a ``token``, all requests pass."""

    def __init__(self, app: ASGIApp, token: str | None, accepts_host: Callable[[str], bool] | None) -> None:
        self._app = app
        self._token = token
        self._accepts_host = accepts_host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
        else:
            refusal = self._refusal(HTTPConnection(scope))
            await (refusal or self._app)(scope, receive, _with_headers(send))

    def _refusal(self, connection: HTTPConnection) -> Response | None:
        headers = connection.headers
        if not has_one_host(headers.getlist, self._accepts_host):
            reason = "these routes have another host name; approvals_app(hosts=[...]) gives them one"
            return refused("other_host", reason, HTTPStatus.FORBIDDEN)
        if self._token is not None:
            # Two headers are rejected: a proxy may have checked either of them.
            given = [bearer_of(value) for value in headers.getlist("authorization")]
            if len(given) != 1 or given[0] is None or not is_token(given[0], self._token):
                response = refused(
                    "unauthorized", "send the token as Authorization: Bearer", HTTPStatus.UNAUTHORIZED
                )
                response.headers["WWW-Authenticate"] = "Bearer"
                return response
        # A browser sends a user's cookies for the pages of all sites.
        if says_other_site(headers.getlist) or has_other_origin(headers.getlist):
            return refused("other_site", "the request comes from another site", HTTPStatus.FORBIDDEN)
        return None


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
        await send(message)

    return sent
