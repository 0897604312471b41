"""Serves the page with uvicorn until a signal ends it."""

from __future__ import annotations

from typing import Final, cast
from urllib.parse import quote

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection

from kantan_agents.page.app import guarded_app
from kantan_agents.page.guard import Guard
from kantan_agents.page.listening import Place
from kantan_agents.page.token_gate import TokenGate
from kantan_agents.tracing.store import TraceStore

_PATIENCE: Final = 0.5
"""Seconds that requests may take to finish when the server ends."""


def local_app(store: TraceStore, place: Place, token: str | None) -> Starlette:
    """Return the page of a trace database as it is served at a place.

    Args:
        store: The trace database.
        place: Where it listens; requests to other names are refused.
        token: What every request needs; None for nothing.
    """
    chain = [Middleware(Guard, authorize=_everybody, hosts=place.hosts)]
    if token is not None:
        chain.append(Middleware(TokenGate, token=token, cookie=f"kantan_agents_{place.port}"))
    return guarded_app(store, *chain)


def address_of(place: Place, token: str | None, trace_id: str | None) -> str:
    """Return the address to open: with the token, and of a run if one is named."""
    secret = "" if token is None else f"?token={quote(token, safe='')}"
    run = "" if trace_id is None else f"#/run/{quote(trace_id, safe='')}"
    return f"{place.address}{secret}{run}"


def serve(app: Starlette, place: Place) -> None:
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
