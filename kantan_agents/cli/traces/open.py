"""``traces open``: serves the page."""

from __future__ import annotations

import os
import secrets
import sys
import threading
import time
import webbrowser
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import typer

from kantan_agents.cli.terminal.failures import EXIT_INTERRUPTED
from kantan_agents.cli.traces.open_store import open_store
from kantan_agents.errors import InvalidOptionError
from kantan_agents.support.extras import require_extra

_TEXT_BROWSERS: Final = frozenset({"elinks", "links", "lynx", "w3m", "www-browser"})
_PATIENCE: Final = 0.2


def open_page(
    path: Path,
    trace_id: str | None,
    *,
    host: str,
    port: int,
    token: str | None,
    prices: Mapping[str, tuple[float, float]],
    browser: bool,
) -> None:
    """Serve the page until Ctrl-C; port 0 is a free one, token None a random one."""
    require_extra("page")
    store = open_store(path)
    from kantan_agents.page.listening import listen
    from kantan_agents.support.request_checks import checked_token, is_remote

    if token is None and is_remote(host):
        reason = (
            f"{host} can be reached from other machines; give --token too, which every request then needs"
        )
        raise InvalidOptionError(option="--host", reason=reason)
    known = secrets.token_urlsafe() if token is None else checked_token(token, "--token")
    run = None if trace_id is None else store.trace(trace_id).trace_id
    place = listen(host, port)
    with place.listener:
        typer.echo(place.address_for(known, run))
        sys.stdout.flush()
        typer.echo("Ctrl-C ends it", err=True)
        ticket = secrets.token_urlsafe()
        if browser:
            # A browser may start slowly, and the socket already listens.
            address = place.address_for(ticket, run)
            threading.Thread(target=_open_browser, args=(address,), daemon=True).start()
        try:
            from kantan_agents.lab.experiment.prices import Prices
            from kantan_agents.page.serve import local_app, serve
            from kantan_agents.page.state import PageState

            state = PageState(store, Prices.of(prices))
            serve(local_app(state, place, known, ticket if browser else None), place)
        except KeyboardInterrupt:
            _end_threads()
            raise


def _open_browser(address: str) -> None:
    # Without a browser, the printed address is enough. A browser in this terminal would take it over, and the
    # page needs JavaScript.
    with suppress(webbrowser.Error, OSError):
        found = webbrowser.get()
        if os.path.basename(getattr(found, "name", "")) not in _TEXT_BROWSERS:  # noqa: PTH119 - a command
            found.open(address)


def _end_threads() -> None:
    """Exit if a query still runs: Python would wait for its thread."""
    deadline = time.monotonic() + _PATIENCE
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.main_thread():
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(EXIT_INTERRUPTED)
