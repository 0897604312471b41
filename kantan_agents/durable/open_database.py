"""Opens the database and its engine on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeVar

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

from kantan_agents.durable.engines.engine import Engine, EngineRun
from kantan_agents.durable.poller import Poller
from kantan_agents.durable.storage.approvals import ApprovalStore
from kantan_agents.durable.storage.database import RunDatabase, failures
from kantan_agents.durable.storage.events import Events
from kantan_agents.durable.storage.steps import StepStore
from kantan_agents.errors import DurableRunNotFoundError
from kantan_agents.support.storable_text import storable_text

T = TypeVar("T")

_READERS: Final = 8
_limiter: RunVar[anyio.CapacityLimiter] = RunVar("kantan_agents_durable_readers")


def _reading() -> anyio.CapacityLimiter:
    """Limit the threads that wait for the database; runs need the others."""
    found = _limiter.get(None)
    if found is None:
        found = anyio.CapacityLimiter(_READERS)
        _limiter.set(found)
    return found


class OpenDatabase:
    """The database of durable runs, started or not."""

    def __init__(
        self, database: RunDatabase, engine: Engine, approvals: ApprovalStore, steps: StepStore
    ) -> None:
        self._database = database
        self._engine = engine
        self._approvals = approvals
        self._steps = steps
        self._events = Events(database)
        self._is_open = False
        self._poller = Poller(
            {"has ended": self._settled, "has events": self._new_events, "goes on": self._continued}
        )

    @property
    def database(self) -> str:
        """The URL of the database, without a password."""
        return self._database.shown

    def _found(self, run_id: str) -> EngineRun:
        # No database accepts any other id.
        found = self._engine.find(run_id) if storable_text(run_id) == run_id else None
        if found is None:
            raise DurableRunNotFoundError(run_id=run_id, database=self._database.shown)
        return found

    def _opened(self, function: Callable[[], T]) -> T:
        if not self._is_open:
            self._database.open()
            self._is_open = True
        try:
            return function()
        except failures() as error:  # of the engine, which has separate connections
            raise self._database.unusable(error) from error

    async def _in_thread(self, function: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(partial(self._opened, function), limiter=_reading())

    def _settled(self, runs: Mapping[str, int]) -> dict[str, int]:
        possible = [one for one in runs if storable_text(one) == one]
        settled = self._opened(lambda: self._engine.settled(possible))
        return dict.fromkeys([*settled, *(runs.keys() - {*possible})], 0)

    def _new_events(self, runs: Mapping[str, int]) -> dict[str, int]:
        return self._opened(lambda: self._events.last_after(runs))

    def _continued(self, runs: Mapping[str, int]) -> dict[str, int]:
        waited = self._opened(lambda: self._approvals.waited_among([*runs]))
        return {run_id: 0 for run_id, next_id in waited.items() if next_id is not None}
