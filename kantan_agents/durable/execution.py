"""Attempts to execute durable runs."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import anyio
import anyio.to_thread

from kantan_agents.durable.patience import patiently
from kantan_agents.durable.step_bodies import dump, load
from kantan_agents.durable.storage.names import stored_name
from kantan_agents.durable.storage.steps import BegunAttempt, StepStore
from kantan_agents.errors import DurableDatabaseError, RunMovedError, StoredStepError


class Execution:
    """One attempt to execute a durable run.

    ``failure``: why the run cannot be stored now. ``unusable``: why this program cannot resume it, while
    another may. ``once`` names the tools whose calls may happen only once.
    """

    def __init__(self, root_id: str, steps: StepStore, once: frozenset[str]) -> None:
        self.root_id = root_id
        self.id = uuid.uuid4().hex
        self.once = once
        self.attempt = 1
        self.begun: Any = None
        self.elapsed = 0.0
        self.task: asyncio.Task[Any] | None = None
        self.is_lost = False
        self.failure: DurableDatabaseError | None = None
        self.unusable: StoredStepError | None = None
        self.has_asked = False
        self.is_open = False
        self.outcome = ""
        self.queue: str | None = None
        self.tenant: str | None = None
        self.is_begun_here = True
        self._steps = steps
        self._known: dict[tuple[str, str], dict[str, Any] | None] = {}
        self._unused: dict[tuple[str, str], dict[str, Any]] = {}

    async def begin(self) -> None:
        """Take the run over, and read its steps; raises E155."""

        def begin() -> BegunAttempt:
            begun = self._steps.begin(self.root_id, self.id)
            # All at the start, so that no call happens if a later step cannot be read.
            for (run_id, name), text in begun.steps.items():
                step = stored_name(name)  # earlier versions stored the raw name
                body = self._known[run_id, step] = None if text is None else load(run_id, step, text)
                if body is not None and "inside" in body:
                    self._unused[run_id, step] = body
            return begun

        self.task, self.is_open = asyncio.current_task(), True
        begun = await self.call(begin)
        self.attempt, self.elapsed = begun.attempt, begun.elapsed

    @property
    def stored(self) -> int:
        """The number of steps finished by earlier attempts."""
        return sum(body is not None for body in self._known.values())

    def known(self, run_id: str, step: str) -> dict[str, Any] | None:
        """Return a stored step, if it has ended."""
        name = stored_name(step)
        self._unused.pop((run_id, name), None)
        return self._known.get((run_id, name))

    def unused(self, run_id: str) -> list[dict[str, Any]]:
        """Return a run's stored steps that this attempt has not used."""
        return [body for (of, _), body in self._unused.items() if of == run_id] if self._unused else []

    def unused_runs(self) -> set[str]:
        """Return the runs with such steps."""
        return {run_id for run_id, _ in self._unused}

    def all_known(self, run_id: str) -> list[dict[str, Any]]:
        """Return all stored steps of a run."""
        return [body for (of, _), body in self._known.items() if of == run_id and body is not None]

    def was_begun(self, run_id: str, step: str) -> bool:
        """Return whether an earlier attempt started a step."""
        return (run_id, stored_name(step)) in self._known

    async def check(self) -> None:
        """Raise E157 unless the run belongs to this attempt."""
        self._check(await self.call(lambda: self._steps.owns(self.root_id, self.id)))

    async def start(self, run_id: str, step: str) -> None:
        """Note the start of a step; raises E157."""
        self._check(
            await self.call(lambda: self._steps.start(self.root_id, self.id, run_id, stored_name(step)))
        )

    async def finish(self, run_id: str, step: str, body: dict[str, Any]) -> None:
        """Store a step's result, even under cancellation; raises E155 or E157."""
        self._check(is_ours=True)
        text, name = dump(body), stored_name(step)
        with anyio.CancelScope(shield=True):
            is_ours = await self.call(lambda: self._steps.finish(self.root_id, self.id, run_id, name, text))
        self._check(is_ours)

    def _check(self, is_ours: bool) -> None:
        if self.unusable is not None:
            raise self.unusable
        if not is_ours:
            self.lose()
            raise RunMovedError(run_id=self.root_id, reason=MOVED)

    def give_up(self, step: str, reason: str) -> StoredStepError:
        """End this attempt, which cannot use the stored steps; return the error."""
        if self.unusable is None:
            self.unusable = StoredStepError(run_id=self.root_id, step=step, reason=reason)
            self.lose()
        return self.unusable

    async def call(self, function: Callable[[], Any]) -> Any:
        """Call an idempotent function of the database."""
        try:
            return await patiently(lambda: anyio.to_thread.run_sync(function))
        except DurableDatabaseError as error:
            self.lose(error)
            raise

    def lose(self, failure: DurableDatabaseError | None = None) -> None:
        """End this attempt: the run moved, or cannot be stored."""
        if self.is_open and not self.is_lost:
            self.is_lost, self.failure = True, failure
            # The run's own task gets the error. Any other task may lose it, as the SDK may.
            if self.task is not None and not _is_current(self.task):
                self.task.get_loop().call_soon_threadsafe(self.task.cancel)


def _is_current(task: asyncio.Task[Any]) -> bool:
    try:
        return asyncio.current_task() is task
    except RuntimeError:  # in a thread without an event loop
        return False


MOVED = "another process has taken it over, or it was cancelled. `kantan-agents runs list` shows its state"

current_execution: ContextVar[Execution | None] = ContextVar("kantan_agents_durable_execution", default=None)
