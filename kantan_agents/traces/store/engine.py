"""``Engine``: functions that differ for a file and for Postgres."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import tzinfo
from functools import partial
from typing import NamedTuple, Protocol

from kantan_agents.traces.backend import backend_of
from kantan_agents.traces.database_url import Place
from kantan_agents.traces.store.build_index import build, remove
from kantan_agents.traces.store.filters import Filters
from kantan_agents.traces.store.find import find
from kantan_agents.traces.store.prune import prune_traces
from kantan_agents.traces.store.records import IndexResult, PruneResult
from kantan_agents.traces.store.retention import Retention

Progress = Callable[[int, int], None]


class _Prune(Protocol):
    def __call__(
        self, retention: Retention, progress: Progress | None, *, dry_run: bool, vacuum: bool
    ) -> PruneResult: ...


class Engine(NamedTuple):
    """Finding, pruning and indexing."""

    find: Callable[[sqlite3.Connection, Filters, int | None, tzinfo, int], list[str]]
    prune: _Prune
    build_index: Callable[[Progress | None], IndexResult]
    remove_index: Callable[[], IndexResult]


def engine_of(place: Place) -> Engine:
    """Return the engine of a database."""
    file = backend_of(place).file
    if file is not None:
        return Engine(find, partial(prune_traces, file), partial(build, file), partial(remove, file))
    # Imported late: a file needs none of it.
    from kantan_agents.traces.store.find_in_server import find_in_server
    from kantan_agents.traces.store.prune_server import prune_server
    from kantan_agents.traces.store.server_index import build_server_index, remove_server_index

    return Engine(
        find_in_server,
        partial(prune_server, place),
        partial(build_server_index, place),
        partial(remove_server_index, place),
    )
