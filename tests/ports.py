"""Ports for servers in other processes, which a test has to name before they bind them."""

from __future__ import annotations

import socket


def reserved_port() -> int:
    """Return a port of this machine that a server may bind, and that nobody gets who asks for any free port.

    A connection that has just ended holds it for a minute. Servers bind it all the same, by ``SO_REUSEADDR``.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address: tuple[str, int] = listener.getsockname()
        with socket.create_connection(address):
            listener.accept()[0].close()  # before the other end, so that this one is in TIME_WAIT
    return address[1]
