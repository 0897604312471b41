"""Serves the page with uvicorn until a signal ends it."""

from __future__ import annotations

from typing import Final, cast

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection

from kantan_agents.page.app import guarded_app
from kantan_agents.page.guard import RequestGuard
from kantan_agents.page.listening import ListeningPlace
from kantan_agents.page.state import PageState
from kantan_agents.page.token_gate import TokenGate

_PATIENCE: Final = 0.5
"""Seconds that requests may take to finish when the server ends."""


def local_app(state: PageState, place: ListeningPlace, token: str, ticket: str | None = None) -> Starlette:
    """Return the page of a trace database as it is served at a place.

    Args:
        state: The page.
        place: Where it listens; requests to other names are refused.
        token: What every request needs.
        ticket: What may be sent in place of it once.
    """
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
    """Serve the page until SIGINT or SIGTERM.

    Raises:
        KeyboardInterrupt: It was interrupted.
    """
    config = uvicorn.Config(
        app,
        access_log=False,  # a token may be in an address
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
