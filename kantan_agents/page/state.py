"""Shared by all requests."""

from __future__ import annotations

import os
import secrets
import weakref
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

import attrs

from kantan_agents.errors import TraceDatabaseError
from kantan_agents.lab.experiment.prices import Prices
from kantan_agents.page.data.signed_data import token_of
from kantan_agents.traces.backend import backend_of
from kantan_agents.traces.database_url import Place, as_place, path_of
from kantan_agents.traces.registry import flush_recorders
from kantan_agents.traces.schema import make_tables
from kantan_agents.traces.store import TraceStore
from kantan_agents.traces.store.connection import reading


class StoreToCome(TraceStore):
    """A service often creates the page before its recorder has created the file."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._is_there = False
        folder = Path(mkdtemp(prefix="kantan_agents_"))
        weakref.finalize(self, rmtree, folder, ignore_errors=True)
        self._empty = folder / "nothing_recorded_yet.sqlite3"
        make_tables(self._empty)
        super().__init__(place)

    @property
    def path(self) -> Path:
        """Accesses the database: do not call it on the event loop."""
        if not self._is_there:
            flush_recorders(self._place)  # a new recorder may be creating it
            try:
                with reading(self._place, by_trace=False, keep_wal=True):
                    self._is_there = True
            except TraceDatabaseError:
                if backend_of(self._place).is_to_come():
                    return self._empty
        return path_of(self._place)

    @path.setter
    def path(self, place: Path) -> None:
        self._place = place


def store_at(place: str | os.PathLike[str]) -> TraceStore:
    """The database may be created later; E60 for another file."""
    try:
        return TraceStore(place)
    except TraceDatabaseError:
        if not backend_of(as_place(place)).is_to_come():
            raise
    return StoreToCome(as_place(place))


@attrs.frozen
class PageState:
    """The state that all requests share.

    ``secret`` signs data that a window stores and sends back. ``token`` is required by requests that change
    something; only the opened page knows it. Processes with the same secret accept the same token.
    """

    store: TraceStore
    prices: Prices = attrs.field(factory=Prices)
    may_label: bool = True
    secret: bytes = attrs.field(factory=secrets.token_bytes, repr=False)
    token: str = attrs.field(init=False, repr=False)

    @token.default
    def _(self) -> str:
        return token_of(self.secret)
