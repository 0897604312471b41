"""A pool, while a ``with`` block holds the file open."""

from __future__ import annotations

import os
import sqlite3
from collections import deque
from contextlib import suppress
from weakref import WeakSet

from kantan_agents.traces.backend import backend_of
from kantan_agents.traces.database_url import Place
from kantan_agents.traces.file_backend import Identity

_MOST = 8

_all: WeakSet[KeptConnections] = WeakSet()


class KeptConnections:
    """A pool of idle connections to one file, for any thread."""

    def __init__(self, path: Place) -> None:
        self._path = path
        self._is_open = True
        self._real: tuple[Identity | None, Place] | None = None
        self._idle: deque[tuple[sqlite3.Connection, Identity]] = deque()
        _all.add(self)

    def identity(self) -> Identity | None:
        """Return the identity of the file now at the path."""
        return backend_of(self._path).identity()

    def real_path(self) -> Place:
        """Resolve the path, once per file identity."""
        identity, real = self.identity(), self._real
        if real is None or identity is None or real[0] != identity:
            real = self._real = (identity, self._path.resolve())
        return real[1]

    def take(self, identity: Identity | None) -> sqlite3.Connection | None:
        """Take a connection to this file; close others."""
        with suppress(IndexError):  # none is left
            while True:
                connection, known = self._idle.pop()
                if known == identity:
                    return connection
                connection.close()
        return None

    def give_back(self, connection: sqlite3.Connection, identity: Identity | None) -> None:
        """Return a connection; ``identity`` is the file before it was opened."""
        if identity is None or len(self._idle) >= _MOST:
            connection.close()
            return
        self._idle.append((connection, identity))
        if not self._is_open:  # closed meanwhile, by another thread
            self.close_idle()

    def close(self) -> None:
        """Close all connections; those in use on ``give_back``."""
        self._is_open = False
        self.close_idle()

    def close_idle(self) -> None:
        """Close the idle connections."""
        with suppress(IndexError):  # none is left
            while True:
                self._idle.pop()[0].close()


def _close_before_fork() -> None:
    # In the child, SQLite would rely on the parent's locks.
    for kept in [*_all]:
        kept.close_idle()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_close_before_fork)
