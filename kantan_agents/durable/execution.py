"""``Execution``: one attempt of a process to make a durable run, with all runs inside it."""

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
    """One attempt to make a durable run.

    Attributes:
        root_id: Id of the outermost run.
        id: Id of this attempt.
        attempt: Its number, from 1.
        begun: What is stored of the run, as it was when it began.
        elapsed: Seconds since the first attempt began.
        task: The task that makes the run.
        is_lost: Whether the run does not belong to this attempt any more.
        failure: Why it cannot be stored any more, if that is so. The run goes on when the database is back.
        unusable: Why this program cannot go on with what is stored, if that is so. Another one may.
        has_asked: Whether this attempt has asked a model, and not only used stored answers.
        once: Names of the tools whose calls may be made only once.
        is_open: Whether the run has not ended yet.
        outcome: How it has ended, as JSON text.
        queue: The queue that the run came from.
        tenant: Whose limits apply there.
        is_begun_here: Whether somebody awaits the run in this process.
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
        """Take the run over from earlier attempts, and read what they have stored.

        Raises:
            StoredStepError: E155, a step cannot be read.
        """

        def begin() -> BegunAttempt:
            begun = self._steps.begin(self.root_id, self.id)
            # All before the run goes on, so that none of its calls is made if another one cannot be read.
            for (run_id, name), text in begun.steps.items():
                step = stored_name(name)  # earlier versions stored the name as it was
                body = self._known[run_id, step] = None if text is None else load(run_id, step, text)
                if body is not None and "inside" in body:
                    self._unused[run_id, step] = body
            return begun

        self.task, self.is_open = asyncio.current_task(), True
        begun = await self.call(begin)
        self.attempt, self.elapsed = begun.attempt, begun.elapsed

    @property
    def stored(self) -> int:
        """The number of steps that earlier attempts have finished."""
        return sum(body is not None for body in self._known.values())

    def known(self, run_id: str, step: str) -> dict[str, Any] | None:
        """Return what an earlier attempt has stored of a step; None if it has not ended."""
        name = stored_name(step)
        self._unused.pop((run_id, name), None)
        return self._known.get((run_id, name))

    def unused(self, run_id: str) -> list[dict[str, Any]]:
        """Return the steps of a run that earlier attempts have stored, and this one has not used."""
        return [body for (of, _), body in self._unused.items() if of == run_id] if self._unused else []

    def unused_runs(self) -> set[str]:
        """Return the runs that have such steps."""
        return {run_id for run_id, _ in self._unused}

    def all_known(self, run_id: str) -> list[dict[str, Any]]:
        """Return what earlier attempts have stored of all steps of a run."""
        return [body for (of, _), body in self._known.items() if of == run_id and body is not None]

    def was_begun(self, run_id: str, step: str) -> bool:
        """Return whether an earlier attempt has begun a step."""
        return (run_id, stored_name(step)) in self._known

    async def check(self) -> None:
        """Check that the run belongs to this attempt, before it does something.

        Raises:
            RunMovedError: E157, it does not any more.
        """
        self._check(await self.call(lambda: self._steps.owns(self.root_id, self.id)))

    async def start(self, run_id: str, step: str) -> None:
        """Note that a step begins, so that another process knows it even if it does not end.

        Raises:
            RunMovedError: E157, the run does not belong to this attempt any more.
        """
        self._check(
            await self.call(lambda: self._steps.start(self.root_id, self.id, run_id, stored_name(step)))
        )

    async def finish(self, run_id: str, step: str, body: dict[str, Any]) -> None:
        """Store what a step has returned, also if the run is cancelled meanwhile.

        Raises:
            RunMovedError: E157, the run does not belong to this attempt any more.
            StoredStepError: E155, this program cannot go on with the run.
        """
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
        """End this attempt, as this program cannot go on with what is stored; return the error."""
        if self.unusable is None:
            self.unusable = StoredStepError(run_id=self.root_id, step=step, reason=reason)
            self.lose()
        return self.unusable

    async def call(self, function: Callable[[], Any]) -> Any:
        """Call a function of the database, which changes nothing if it is called again."""
        try:
            return await patiently(lambda: anyio.to_thread.run_sync(function))
        except DurableDatabaseError as error:
            self.lose(error)
            raise

    def lose(self, failure: DurableDatabaseError | None = None) -> None:
        """End this attempt: the run belongs to another one, or to none, or cannot be stored any more."""
        if self.is_open and not self.is_lost:
            self.is_lost, self.failure = True, failure
            # The task of the run itself gets the error. Any other one may lose it, as the SDK may.
            if self.task is not None and not _is_current(self.task):
                self.task.get_loop().call_soon_threadsafe(self.task.cancel)


def _is_current(task: asyncio.Task[Any]) -> bool:
    try:
        return asyncio.current_task() is task
    except RuntimeError:  # in a thread without an event loop
        return False


MOVED = "another process has taken it over, or it was cancelled. `kantan-agents runs list` shows its state"

current_execution: ContextVar[Execution | None] = ContextVar("kantan_agents_durable_execution", default=None)
"""The execution of the durable run that this task is in."""
