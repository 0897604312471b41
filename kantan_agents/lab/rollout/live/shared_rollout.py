"""The state of a rollout in this process."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock
from typing import Final
from weakref import WeakSet

import attrs

from kantan_agents.core.events import Observers
from kantan_agents.errors import KantanAgentsError, RolloutConflictError, TraceDatabaseError
from kantan_agents.lab.experiment.database import prepare_database
from kantan_agents.lab.rollout.plan import RolloutPlan
from kantan_agents.lab.rollout.state.change import start
from kantan_agents.lab.rollout.state.rows import RolloutState, read_state
from kantan_agents.lab.rollout.verdict.status import RolloutStatus
from kantan_agents.support.log import get_logger
from kantan_agents.tool_rules import ToolRules

_log = get_logger("kantan_agents.rollout")

_START_WAIT_SECONDS: Final = 0.5  # the program is just creating its agents

_MOST_LOGGED: Final = 20

NO_DATABASE: Final = "no database"
UNREADABLE: Final = "state unreadable"
CONFLICT: Final = "conflict"

Limits = tuple[tuple[str, ToolRules], ...]

OnVerdict = Callable[[RolloutStatus], "str | None"]
"""Gets each new status; returns ``"promote"``, ``"stop"``, or None."""


@attrs.frozen
class Current:
    """The current assignment rule; with a ``problem``, all users get the control."""

    share: float = 0.0
    winner: int | None = None
    problem: str | None = None


class SharedRollout:
    """The state of a rollout in this process.

    ``current`` is replaced as a whole, so that any thread may read it.
    """

    def __init__(self, name: str, plan: RolloutPlan, on_verdict: OnVerdict | None) -> None:
        self.name, self.plan, self.on_verdict = name, plan, on_verdict
        self.path: Path | None = None
        self.current = Current(problem=NO_DATABASE)
        self.state: RolloutState | None = None
        self.limits: Mapping[str, Limits] = {}
        self.observers: WeakSet[Observers] = WeakSet()
        self._revision = 0
        self._logged: set[str] = set()
        self._accepting = Lock()

    def open(self, path: Path) -> None:
        """Store the rollout if it is new, and read its state. Errors are logged."""
        self.path = path
        self._try(lambda: self._started(path, _START_WAIT_SECONDS))

    def refresh(self) -> None:
        """Read the state again. Errors are logged, and all users get the control meanwhile."""
        path = self.path
        if path is not None:
            self._try(lambda: self._read(path))

    def accept(self, state: RolloutState) -> None:
        """Apply a state, unless a later one is applied already."""
        with self._accepting:
            if state.revision < self._revision:
                return  # read before the last change
            self._revision, self.state = state.revision, state
            self.current = _current(state)

    def renew_lock(self) -> None:
        """Replace the lock: in a forked child, the thread that held it does not exist."""
        self._accepting = Lock()

    def warn_once(self) -> None:
        """Log that no database is known."""
        reason = "no trace database is known; call record_traces, or give store"
        self._report(NO_DATABASE, RolloutConflictError(rollout=self.name, reason=reason))

    def warn_of_unit(self, unit: str, reason: str) -> None:
        """Log that a run had no ``unit``, once for each reason."""
        if reason not in self._logged and len(self._logged) < _MOST_LOGGED:
            self._logged.add(reason)
            _log.warning("run without a unit", rollout=self.name, unit=unit, reason=reason)

    def _started(self, path: Path, wait: float | None) -> RolloutState:
        prepare_database(path)
        return start(path, self.name, self.plan, wait=wait)

    def _read(self, path: Path) -> RolloutState:
        found = read_state(path, self.name)
        if self._revision == 0:
            return self._started(path, None)  # it could not start before
        if found is None:
            # Starting anew would undo a stop, so that needs a new process.
            raise TraceDatabaseError(
                path=str(path), reason=f"it no longer has the rollout {self.name!r}; was the file replaced?"
            )
        different = found.plan.difference(self.plan)
        if different is not None:
            raise RolloutConflictError(rollout=self.name, reason=f"another process has other {different}")
        return found

    def _try(self, read: Callable[[], RolloutState]) -> None:
        try:
            state = read()
        except RolloutConflictError as error:
            self._report(CONFLICT, error)
        except (KantanAgentsError, sqlite3.Error, OSError) as error:
            self._report(UNREADABLE, error)
        else:
            if self.state is None:
                self._logged.clear()  # log the same error again if it comes back
            self.accept(state)

    def _report(self, problem: str, error: Exception) -> None:
        self.state, self.current = None, Current(problem=problem)
        text = str(error)
        if text not in self._logged and len(self._logged) < _MOST_LOGGED:
            self._logged.add(text)
            _log.error(
                "rollout not used, so all runs get the control",
                rollout=self.name,
                agent=self.plan.agent,
                error=text,
            )


def _current(state: RolloutState) -> Current:
    if state.status == "promoted":
        # The plan is the stored one, so the arm exists.
        return Current(1.0, list(state.plan.arms).index(state.arm or state.plan.control))
    return Current(0.0, 0) if state.status == "stopped" else Current(state.share)
