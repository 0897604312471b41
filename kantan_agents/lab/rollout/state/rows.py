"""Reads the rows of rollouts."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import attrs

from kantan_agents.errors import RolloutNotFoundError, TraceDatabaseError
from kantan_agents.lab.rollout.plan import RolloutPlan
from kantan_agents.lab.rollout.state.tables import HISTORY, ROLLOUTS, has_tables
from kantan_agents.traces.capture.canonical import decode
from kantan_agents.traces.store.connection import reading

Status = Literal["running", "promoted", "stopped"]
Action = Literal["start", "promote", "stop", "return"]


@attrs.frozen
class RolloutState:
    """The stored state of a rollout.

    Attributes:
        name: Its name.
        plan: Its definition.
        status: ``"running"``; ``"promoted"`` if all users have ``arm``; ``"stopped"`` if all have the
            control.
        step: Number of the step of the ramp, from 0.
        share: The share of all new arms together, 0 to 1.
        arm: The promoted arm, if any.
        revision: Counts its changes.
        created_at: Its start, in UTC.
    """

    name: str
    plan: RolloutPlan
    status: Status
    step: int
    share: float
    arm: str | None
    revision: int
    created_at: datetime


@attrs.frozen
class RolloutChange:
    """One change of a rollout.

    Attributes:
        rollout: Name of the rollout.
        at: Time of the change, in UTC.
        action: ``"start"``, ``"promote"``, ``"stop"``, or ``"return"`` if a guard has returned all users to
            the control.
        author: The author: a person, a callback, or the guard.
        share: The share of all new arms together from then on.
        arm: The promoted arm.
        reason: The reason.
        evidence: The metrics at that moment, as JSON data; None without any.
    """

    rollout: str
    at: datetime
    action: Action
    author: str
    share: float
    arm: str | None
    reason: str
    evidence: Mapping[str, Any] | None


def read_states(path: Path) -> list[RolloutState]:
    """Return the rollouts in a file, the latest first."""
    with reading(path, by_trace=False, with_views=False) as connection:
        return states_in(connection, path)


def states_in(connection: sqlite3.Connection, path: Path) -> list[RolloutState]:
    """Return the rollouts, the latest first."""
    if not has_tables(connection):
        return []
    query = f"SELECT * FROM {ROLLOUTS} ORDER BY created_at DESC, name"  # noqa: S608
    return [state_of(path, row) for row in connection.execute(query)]


def state_of(path: Path, row: sqlite3.Row) -> RolloutState:
    """Return the rollout of a row."""
    try:
        plan = RolloutPlan.from_dict(decode(row["plan"]))
        share, status = float(row["share"]), row["status"]
        if status not in ("running", "promoted", "stopped") or not 0 <= share <= 1:
            raise ValueError(f"its status is {status!r}, its share {share!r}")  # noqa: TRY301 - reported below
        return RolloutState(
            row["name"],
            plan,
            status,
            int(row["step"]),
            share,
            row["arm"],
            int(row["revision"]),
            datetime.fromisoformat(row["created_at"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reason = f"the rollout {row['name']!r} is damaged: {type(error).__name__}: {error}"
        raise TraceDatabaseError(path=str(path), reason=reason) from error


def read_state(path: Path, name: str) -> RolloutState | None:
    """Return this rollout, even if other rows are damaged."""
    with reading(path, by_trace=False, with_views=False) as connection:
        if not has_tables(connection):
            return None
        query = f"SELECT * FROM {ROLLOUTS} WHERE name = ?"  # noqa: S608
        row = connection.execute(query, (name,)).fetchone()
        return None if row is None else state_of(path, row)


def find_state(path: Path, name: str) -> RolloutState:
    """Return a rollout by its name, or an agent's latest."""
    found = read_state(path, name)
    if found is not None:
        return found
    states = read_states(path)
    of_agent = [state for state in states if state.plan.agent == name]
    running = [state for state in of_agent if state.status == "running"]
    for state in (*running, *of_agent):
        return state
    known = ", ".join(repr(state.name) for state in states) or "none"
    raise RolloutNotFoundError(name=name, path=str(path), known=known)


def read_history(path: Path, name: str) -> list[RolloutChange]:
    """Return the changes of a rollout, the oldest first."""
    name = find_state(path, name).name
    with reading(path, by_trace=False, with_views=False) as connection:
        query = f"SELECT * FROM {HISTORY} WHERE rollout = ? ORDER BY id"  # noqa: S608
        return [_change_of(path, row) for row in connection.execute(query, (name,))]


def _change_of(path: Path, row: sqlite3.Row) -> RolloutChange:
    try:
        evidence = None if row["evidence"] is None else decode(row["evidence"])
        return RolloutChange(
            row["rollout"],
            datetime.fromisoformat(row["at"]),
            row["action"],
            row["author"],
            float(row["share"]),
            row["arm"],
            row["reason"],
            evidence,
        )
    except (TypeError, ValueError) as error:
        reason = f"the history of the rollout {row['rollout']!r} is damaged: {error}"
        raise TraceDatabaseError(path=str(path), reason=reason) from error
