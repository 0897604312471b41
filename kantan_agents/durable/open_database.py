"""``OpenDatabase``: the database of durable runs with its engine, opened when it is first used."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio.to_thread

from kantan_agents.durable.engines.engine import Engine, EngineRun
from kantan_agents.durable.storage.approvals import ApprovalStore
from kantan_agents.durable.storage.database import RunDatabase, failures
from kantan_agents.durable.storage.events import Events
from kantan_agents.durable.storage.steps import StepStore
from kantan_agents.errors import DurableRunNotFoundError
from kantan_agents.support.storable_text import storable_text

T = TypeVar("T")


class OpenDatabase:
    """The database of durable runs, started or not.

    Args:
        database: The database.
        engine: Its engine.
        approvals: Its waiting runs.
        steps: Its steps.
    """

    def __init__(
        self, database: RunDatabase, engine: Engine, approvals: ApprovalStore, steps: StepStore
    ) -> None:
        self._database = database
        self._engine = engine
        self._approvals = approvals
        self._steps = steps
        self._events = Events(database)
        self._is_open = False

    @property
    def database(self) -> str:
        """The URL of the database, without a password."""
        return self._database.shown

    def _found(self, run_id: str) -> EngineRun:
        # No database takes any other id, and so none has it.
        found = self._engine.find(run_id) if storable_text(run_id) == run_id else None
        if found is None:
            raise DurableRunNotFoundError(run_id=run_id, database=self._database.shown)
        return found

    async def _in_thread(self, function: Callable[[], T]) -> T:
        def opened() -> T:
            if not self._is_open:
                self._database.open()
                self._is_open = True
            try:
                return function()
            except failures() as error:  # of the engine, which has connections of its own
                raise self._database.unusable(error) from error

        return await anyio.to_thread.run_sync(opened)
