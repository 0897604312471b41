"""Looks for runs that others have left, taken over, canceled or answered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import Any

from kantan_agents.durable.engines.engine import Engine
from kantan_agents.durable.execution import MOVED, Execution
from kantan_agents.durable.storage.alive import Alive
from kantan_agents.durable.storage.steps import StepStore
from kantan_agents.support.log import get_logger

_log = get_logger("kantan_agents.durable")

_LOOKS_FOR_AGENTS = 10


class Overseer:
    """A thread that looks at the database every ``interval`` seconds; ``go_on`` resumes answered runs."""

    def __init__(
        self,
        engine: Engine,
        alive: Alive,
        steps: StepStore,
        go_on: Callable[[], int],
        agents: Collection[str],
        interval: float,
    ) -> None:
        self._engine = engine
        self._alive = alive
        self._steps = steps
        self._go_on = go_on
        self._agents = agents
        self._missing: dict[str, bool] = {}
        self._looks = 0
        self._interval = interval
        self._active: dict[str, Execution] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._may_have_left = False
        self._lock = Lock()
        self._ends = Event()
        self._thread: Thread | None = None
        self.is_stopping = False

    def hold(self, executor: str) -> None:
        """Show that this process is alive."""
        self._alive.hold(executor)

    def start(self) -> None:
        """Start looking."""
        self.is_stopping = False
        self._ends.clear()
        self._thread = Thread(target=self._look_in_intervals, name="kantan-agents-durable", daemon=True)
        self._thread.start()

    def look_no_more(self) -> None:
        """End the thread. Before the engine, whose connections it uses."""
        self._ends.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(10.0)

    def stop(self) -> None:
        """Stop, and leave this process's runs to others."""
        self.look_no_more()
        self._alive.release()

    def forget(self) -> None:
        """Reset a forked child."""
        self._thread, self._lock = None, Lock()
        self._active.clear()
        self._tasks.clear()
        self._alive.forget()

    @contextmanager
    def watching(self, execution: Execution) -> Iterator[None]:
        """Inside the block, end the execution once its run has moved."""
        with self._lock:
            self._active[execution.root_id] = execution
        try:
            yield
        finally:
            with self._lock:
                if self._active.get(execution.root_id) is execution:
                    del self._active[execution.root_id]

    def leave(self) -> None:
        """Resume unstored runs, once the database is back."""
        self._may_have_left = True

    def _give_left(self) -> None:
        if self._may_have_left:
            self._may_have_left = False  # first: a run may be left meanwhile
            self._may_have_left |= self._engine.recover_unmade()

    def wait_for(self, task: asyncio.Task[Any] | None) -> None:
        """Let ``wait_for_end`` wait for an engine's task, which stores the outcome."""
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def wait_for_end(self, timeout: float) -> None:
        """Wait until no run is active, or for the timeout."""
        end = time.monotonic() + timeout
        current = asyncio.current_task()
        while time.monotonic() < end:
            with self._lock:
                left = [one for one in self._active.values() if one.task is not current]
            if not left and not self._tasks:
                return
            await asyncio.sleep(0.02)

    def end_all(self) -> None:
        """End all active runs. Their stored steps remain."""
        with self._lock:
            left = list(self._active.values())
        for execution in left:
            execution.lose()

    def reason_of(self, run_id: str) -> str:
        """Return why a run does not continue here."""
        if self.is_stopping:
            return "DurableRuns was stopped. The run goes on in another process, or when it is started again"
        try:
            found = self._engine.find(run_id)
        except Exception:  # noqa: BLE001 - only the reason is less exact
            return MOVED
        return "it was cancelled" if found is not None and found.status == "cancelled" else MOVED

    def look(self) -> None:
        """Look once; log failures, for the next look."""
        for act in (self._alive.keep, self._give_left, self._take_over, self._end_lost, self._go_on):
            if not self._ends.is_set():
                self._try(act)
        self._looks += 1
        if self._looks % _LOOKS_FOR_AGENTS == 0 and not self._ends.is_set():
            self._try(self._warn_of_missing_agents)

    def _warn_of_missing_agents(self) -> None:
        """Warn of runs whose agent is missing here: it may have been renamed."""
        waiting = self._engine.agents_waited_for()
        waiting = {agent: count for agent, count in waiting.items() if agent not in self._agents}
        # Another process may be about to take new ones.
        unknown = {agent: count for agent, count in waiting.items() if self._missing.get(agent) is False}
        for agent, count in unknown.items():
            advice = "start a process that has an agent of this name, or cancel them"
            _log.warning(
                "durable runs wait for an agent that is not here", agent=agent, runs=count, advice=advice
            )
        self._missing = {agent: agent in self._missing for agent in waiting}

    def _try(self, act: Callable[[], object]) -> None:
        try:
            act()
        except Exception as error:  # noqa: BLE001 - the database may be away for a while
            self._may_have_left = True  # the engine may have taken runs that it could not start
            if not self._ends.is_set():
                _log.warning("durable runs not looked after", error=str(error).split("\n", 1)[0])

    def _look_in_intervals(self) -> None:
        while not self._ends.wait(self._interval):
            self.look()

    def _take_over(self) -> None:
        ended = self._alive.ended([one for one in self._engine.executors() if one != self._engine.executor])
        if ended:
            count = self._engine.recover(ended)
            _log.info("runs of ended processes taken over", processes=len(ended), runs=count)

    def _end_lost(self) -> None:
        with self._lock:
            owners = {run_id: execution.id for run_id, execution in self._active.items()}
        for run_id in self._steps.lost(owners) if owners else ():
            with self._lock:
                execution = self._active.get(run_id)
            if execution is not None and execution.id == owners[run_id]:
                execution.lose()
