"""Changes rollouts, each change in one transaction with its row of history."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import attrs

from kantan_agents.errors import RolloutConflictError, RolloutNotFoundError, RolloutStepError
from kantan_agents.lab.rollout.plan import RolloutPlan
from kantan_agents.lab.rollout.state.rows import Action, RolloutState, state_of, states_in
from kantan_agents.lab.rollout.state.tables import HISTORY, ROLLOUTS, create_tables, has_tables
from kantan_agents.traces.capture.canonical import ordered
from kantan_agents.traces.store.connection import changing, transaction


def start(path: Path, name: str, plan: RolloutPlan, *, wait: float | None = None) -> RolloutState:
    """Store a new rollout and return its state; E111 for another one."""
    with changing(path, wait=wait) as connection:
        known = _row(connection, name) if has_tables(connection) else None
        if known is None:
            with transaction(connection):
                create_tables(connection)
                known = _row(connection, name)  # another process may have been first
                if known is None:
                    _check_alone(connection, path, name, plan)
                    known = _insert(connection, name, plan)
        state = state_of(path, known)
        different = state.plan.difference(plan)
        if different is not None:
            reason = (
                f"it began with other {different}, and its evidence is about these; "
                "give the changed rollout another name"
            )
            raise RolloutConflictError(rollout=name, reason=reason)
        if state.plan.prices != plan.prices:
            with transaction(connection):
                update = f"UPDATE {ROLLOUTS} SET plan = ? WHERE name = ?"  # noqa: S608
                connection.execute(update, (_text(plan.to_dict()), name))
            state = attrs.evolve(state, plan=plan)
        return state


def _check_alone(connection: sqlite3.Connection, path: Path, name: str, plan: RolloutPlan) -> None:
    for other in states_in(connection, path):
        if other.plan.agent == plan.agent and other.status == "running":
            reason = (
                f"the rollout {other.name!r} of the agent {plan.agent!r} is running; promote or stop it first"
            )
            raise RolloutConflictError(rollout=name, reason=reason)


def _insert(connection: sqlite3.Connection, name: str, plan: RolloutPlan) -> sqlite3.Row:
    statement = (
        f"INSERT INTO {ROLLOUTS}(name, agent, plan, status, step, share, revision, created_at) "  # noqa: S608
        "VALUES (?, ?, ?, 'running', 0, ?, 1, ?)"
    )
    values = (name, plan.agent, _text(plan.to_dict()), plan.ramp[0], _now())
    connection.execute(statement, values)
    _note(
        connection, name, "start", "code", plan.ramp[0], None, "an agent with this rollout was created", None
    )
    row = _row(connection, name)
    assert row is not None
    return row


def promote(
    path: Path,
    name: str,
    *,
    arm: str | None = None,
    author: str,
    reason: str,
    evidence: Mapping[str, Any] | None = None,
    revision: int | None = None,
    expect_step: int | None = None,
) -> RolloutState:
    """Give the new arms the next share of their ramp, and all users one arm at the last step.

    ``arm`` skips to the last step. E113 if ``revision`` or ``expect_step`` differ.
    """

    def next_step(state: RolloutState) -> RolloutState:
        _check_running(state)
        if expect_step not in (None, state.step):
            reason = f"it is at step {state.step} of its ramp, not at {expect_step}; look at its status again"
            raise RolloutStepError(rollout=name, reason=reason)
        new = state.plan.new_arms
        if arm is not None and arm not in state.plan.arms:
            listed = ", ".join(map(repr, state.plan.arms))
            raise RolloutStepError(rollout=name, reason=f"it has no arm {arm!r}; its arms are {listed}")
        if arm is not None and arm == state.plan.control:
            raise RolloutStepError(rollout=name, reason=f"{arm!r} is the control; stop the rollout instead")
        step, ramp = state.step + 1, state.plan.ramp
        share = ramp[step] if step < len(ramp) else 1.0
        if arm is None and share < 1:
            return attrs.evolve(state, step=step, share=share)
        if arm is None and len(new) > 1:
            listed = ", ".join(map(repr, new))
            raise RolloutStepError(rollout=name, reason=f"all units get one arm now; name it: {listed}")
        return attrs.evolve(state, status="promoted", step=len(ramp), share=1.0, arm=arm or new[0])

    return _changed(path, name, next_step, ("promote", author, reason, evidence), revision)


def stop(
    path: Path,
    name: str,
    *,
    author: str,
    reason: str,
    evidence: Mapping[str, Any] | None = None,
    action: Action = "stop",
    revision: int | None = None,
) -> RolloutState:
    """Give all users the control; E113 if ``revision`` differs.

    ``action`` is ``"return"`` for a guard, which cannot stop a rollout that was promoted meanwhile.
    """

    def stopped(state: RolloutState) -> RolloutState:
        if state.status == "stopped":
            raise RolloutStepError(rollout=name, reason="it is stopped already")
        if action == "return":
            _check_running(state)
        return attrs.evolve(state, status="stopped", share=0.0, arm=None)

    return _changed(path, name, stopped, (action, author, reason, evidence), revision)


def _check_running(state: RolloutState) -> None:
    if state.status != "running":
        ended = f"{state.arm!r} was promoted" if state.status == "promoted" else "it was stopped"
        raise RolloutStepError(rollout=state.name, reason=f"{ended}; start another one under another name")


def _changed(
    path: Path,
    name: str,
    change: Callable[[RolloutState], RolloutState],
    line: tuple[Action, str, str, Mapping[str, Any] | None],
    revision: int | None,
) -> RolloutState:
    with changing(path) as connection, transaction(connection):
        row = _row(connection, name) if has_tables(connection) else None
        if row is None:
            raise RolloutNotFoundError(name=name, path=str(path), known="lost it")
        before = state_of(path, row)
        if revision is not None and revision != before.revision:
            raise RolloutStepError(rollout=name, reason="it has changed meanwhile; look at its status again")
        after = attrs.evolve(change(before), revision=before.revision + 1)
        update = (
            f"UPDATE {ROLLOUTS} SET status = ?, step = ?, share = ?, arm = ?, revision = ? WHERE name = ?"  # noqa: S608
        )
        connection.execute(update, (after.status, after.step, after.share, after.arm, after.revision, name))
        action, author, reason, evidence = line
        _note(connection, name, action, author, after.share, after.arm, reason, evidence)
        return after


def _row(connection: sqlite3.Connection, name: str) -> sqlite3.Row | None:
    found: sqlite3.Row | None = connection.execute(
        f"SELECT * FROM {ROLLOUTS} WHERE name = ?",  # noqa: S608
        (name,),
    ).fetchone()
    return found


def _note(
    connection: sqlite3.Connection,
    name: str,
    action: Action,
    author: str,
    share: float,
    arm: str | None,
    reason: str,
    evidence: Mapping[str, Any] | None,
) -> None:
    statement = (
        f"INSERT INTO {HISTORY}(rollout, at, action, author, share, arm, reason, evidence) "  # noqa: S608
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    )
    text = None if evidence is None else _text(evidence)
    connection.execute(statement, (name, _now(), action, author, share, arm, reason, text))


def _text(data: Mapping[str, Any]) -> str:
    return ordered(data).decode("utf-8", "replace")


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="microseconds")
