"""``Shared``: the state of a rollout in this process, which all its agents share."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final
from weakref import WeakSet

import attrs

from kantan_agents.errors import KantanAgentsError, RolloutConflictError
from kantan_agents.evaluation.experiment.database import prepare_database
from kantan_agents.events import Observers
from kantan_agents.rollout.plan import Plan
from kantan_agents.rollout.state.change import start
from kantan_agents.rollout.state.rows import RolloutState, read_states
from kantan_agents.rollout.verdict.status import RolloutStatus
from kantan_agents.support.log import get_logger

_log = get_logger("kantan_agents.rollout")

_START_WAIT_SECONDS: Final = 0.5  # the program is just creating its agents

NO_DATABASE: Final = "no database"
UNREADABLE: Final = "state unreadable"
CONFLICT: Final = "conflict"

OnVerdict = Callable[[RolloutStatus], "str | None"]
"""Called with each new status; returns ``"promote"``, ``"stop"``, or None to leave the rollout as it is."""


@attrs.frozen
class Current:
    """What decides about the arms now.

    Attributes:
        share: The share of all new arms together.
        winner: Number of the arm that all units get; None while arms are drawn.
        problem: Why no arm is drawn; then all units get the control.
    """

    share: float = 0.0
    winner: int | None = None
    problem: str | None = None


class Shared:
    """The state of a rollout in this process.

    Attributes:
        name: Name of the rollout.
        plan: Its plan.
        path: The trace database; None until it is known.
        current: What decides about the arms; replaced as a whole, so that any thread may read it.
        state: The state as it was read last; None if it was not read.
        observers: The observers of the agents, for events.
        on_verdict: The callback.
    """

    def __init__(self, name: str, plan: Plan, on_verdict: OnVerdict | None) -> None:
        self.name, self.plan, self.on_verdict = name, plan, on_verdict
        self.path: Path | None = None
        self.current = Current(problem=NO_DATABASE)
        self.state: RolloutState | None = None
        self.observers: WeakSet[Observers] = WeakSet()
        self._logged: str | None = None

    def open(self, path: Path) -> None:
        """Store the rollout in a database if it is new there, and read its state. Failures are logged."""
        self.path = path
        self._try(lambda: self._started(path, _START_WAIT_SECONDS))

    def refresh(self) -> None:
        """Read the state again. Failures are logged; then all units get the control until it can be read."""
        path = self.path
        if path is not None:
            self._try(lambda: self._read(path))

    def accept(self, state: RolloutState) -> None:
        """Let a state decide from now on."""
        self.state = state
        self._logged = None
        if state.status == "promoted":
            # The plan is the stored one, so the arm exists.
            self.current = Current(1.0, list(self.plan.arms).index(state.arm or self.plan.control))
        elif state.status == "stopped":
            self.current = Current(0.0, 0)
        else:
            self.current = Current(state.share)

    def warn_once(self) -> None:
        """Log that no database is known."""
        if self._logged is None:
            reason = "no trace database is known; call record_traces, or give store"
            self._report(NO_DATABASE, RolloutConflictError(rollout=self.name, reason=reason))

    def _started(self, path: Path, wait: float | None) -> RolloutState:
        prepare_database(path)
        return start(path, self.name, self.plan, wait=wait)

    def _read(self, path: Path) -> RolloutState:
        found = next((state for state in read_states(path) if state.name == self.name), None)
        if found is None or found.plan.difference(self.plan) is not None:
            return self._started(path, None)  # a new file, or the conflict with the stored plan
        return found

    def _try(self, read: Callable[[], RolloutState]) -> None:
        try:
            state = read()
        except RolloutConflictError as error:
            self._report(CONFLICT, error)
        except (KantanAgentsError, sqlite3.Error, OSError) as error:
            self._report(UNREADABLE, error)
        else:
            self.accept(state)

    def _report(self, problem: str, error: Exception) -> None:
        self.state, self.current = None, Current(problem=problem)
        text = str(error)
        if text != self._logged:
            self._logged = text
            _log.error(
                "rollout not used, so all runs get the control",
                rollout=self.name,
                agent=self.plan.agent,
                error=text,
            )
