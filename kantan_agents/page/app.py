"""``traces_app``: the page as an ASGI application."""

from __future__ import annotations

import inspect
import os
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from importlib.resources import files
from typing import Final

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.experiment.prices import Prices
from kantan_agents.page.api import routes
from kantan_agents.page.guard import HEADERS, RequestGuard
from kantan_agents.page.state import PageState, store_at
from kantan_agents.support.arguments import shown
from kantan_agents.support.log import get_logger
from kantan_agents.support.request_checks import host_check
from kantan_agents.traces.store import TraceStore

Authorize = Callable[[HTTPConnection], bool | Awaitable[bool]]
"""Returns whether a request may see the page. May be async."""

_STATIC = files("kantan_agents.page") / "static"

_SHORTEST_SECRET: Final = 16

_log = get_logger("kantan_agents.page")


def traces_app(
    store: TraceStore | str | os.PathLike[str],
    *,
    authorize: Authorize | None = None,
    hosts: Sequence[str] | None = None,
    may_label: bool = True,
    prices: Mapping[str, tuple[float, float]] | None = None,
    secret: str | None = None,
) -> Starlette:
    """Return the page of a trace database, to be mounted into a service with Starlette or FastAPI.

        app.mount("/traces", traces_app("traces.sqlite3", authorize=is_operator))

    It answers requests from its own pages only, and rejects requests that a browser sends from another site.
    Everything from models, tools and files is shown as plain text.

    Args:
        store: The trace database, or its path or URL. It may be created later, for example by a recorder of
            the service: until then, the page is empty.
        authorize: Called with each request, as a starlette ``HTTPConnection``. If it does not return True, or
            raises, the request is rejected with status 403. Without it, everyone who can reach the page under
            one of its host names may see it.
        hosts: The host names of the page, such as ``["traces.example"]``, each for all ports or with one; a
            request with another ``Host`` is rejected. The default is any host with ``authorize``, and without
            it only this machine's, such as ``localhost`` and ``127.0.0.1``: a site that the user visits can
            point its name there.
        may_label: Whether labels may be given in the page.
        prices: For each model, the prices of a million input and output tokens. With them, the page shows the
            cost of runs; cached tokens count as others.
        secret: An unguessable str of 16 or more characters. Several processes that serve the same page
            (``uvicorn --workers``) need the same; otherwise one rejects the labels of a window that another
            has opened. By default each process creates its own.

    Raises:
        InvalidOptionError: E75, an argument is invalid.
        TraceDatabaseError: E60, the file is not a trace database, or its directory does not exist.
    """
    if authorize is not None and not callable(authorize):
        raise InvalidOptionError(option="authorize", reason=f"must be a function, not {shown(authorize)}")
    opened = store if isinstance(store, TraceStore) else store_at(store)
    state = PageState(opened, Prices.of(prices), may_label, _checked_secret(secret))
    accepts_host = host_check(hosts, only_loopback=authorize is None)
    guard = Middleware(
        RequestGuard, authorize=_decided(authorize), accepts_host=accepts_host, follows_links=True
    )
    return guarded_app(state, guard)


def guarded_app(state: PageState, *middleware: Middleware) -> Starlette:
    """The first middleware is the outermost."""
    app = Starlette(routes=_routes(), middleware=middleware, exception_handlers={Exception: _failed})
    app.state.page = state
    return app


def _routes() -> list[BaseRoute]:
    return [
        Route("/", _index),
        Mount("/static", StaticFiles(directory=str(_STATIC))),
        Mount("/api", routes=routes()),
    ]


async def _index(request: Request) -> Response:
    state: PageState = request.app.state.page
    template = (_STATIC / "index.html").read_text(encoding="utf-8")
    # The token has hexadecimal digits only, and nothing else is inserted into the markup.
    return HTMLResponse(template.replace("{{ token }}", state.token), headers={"Cache-Control": "no-store"})


async def _failed(request: Request, error: Exception) -> Response:
    # Starlette sends this response past all middleware, so it needs the headers of the guard.
    _log.error("the page has failed", path=request.url.path, exc_info=error)
    text = f"the page has failed: {type(error).__name__}"
    return PlainTextResponse(text, HTTPStatus.INTERNAL_SERVER_ERROR, HEADERS)


def _checked_secret(secret: str | None) -> bytes:
    if secret is None:
        return secrets.token_bytes()
    if not isinstance(secret, str):
        # The message must not contain it.
        raise InvalidOptionError(option="secret", reason=f"must be a str, not {type(secret).__name__}")
    if len(secret) < _SHORTEST_SECRET:
        reason = f"must have at least {_SHORTEST_SECRET} characters, not {len(secret)}"
        raise InvalidOptionError(option="secret", reason=reason)
    return secret.encode("utf-8", "surrogatepass")


def _decided(authorize: Authorize | None) -> Callable[[HTTPConnection], Awaitable[bool]]:
    async def decide(connection: HTTPConnection) -> bool:
        if authorize is None:
            return True
        allowed = authorize(connection)
        return (await allowed if inspect.isawaitable(allowed) else allowed) is True

    return decide
