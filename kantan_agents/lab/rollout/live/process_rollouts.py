"""The rollouts of this process, each once."""

from __future__ import annotations

import os
from pathlib import Path
from threading import RLock
from typing import ClassVar
from weakref import WeakSet

from kantan_agents.errors import RolloutConflictError
from kantan_agents.lab.rollout.live.shared_rollout import Limits, OnVerdict, SharedRollout
from kantan_agents.lab.rollout.live.watcher import watch
from kantan_agents.lab.rollout.plan import RolloutPlan
from kantan_agents.lab.rollout.state.rows import RolloutState
from kantan_agents.traces import registry


class _KnownRollouts:
    """The rollouts of this process. The lock is never held while a file is read."""

    lock = RLock()
    known: ClassVar[WeakSet[SharedRollout]] = WeakSet()


def _after_fork() -> None:
    _KnownRollouts.lock = RLock()
    for shared in list(_KnownRollouts.known):
        shared.renew_lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def shared_for(
    name: str, plan: RolloutPlan, on_verdict: OnVerdict | None, store: Path | None
) -> SharedRollout:
    """Return the state of a rollout, which all agents with equal rollouts share."""
    path = store or registry.main_database()
    path = None if path is None else path.resolve()
    known = _known_one(name, plan, path)
    if known is not None:
        known.on_verdict = on_verdict or known.on_verdict
        return known
    shared = SharedRollout(name, plan, on_verdict)
    with _KnownRollouts.lock:
        _KnownRollouts.known.add(shared)
    if path is None:
        registry.when_recorded(_open_waiting)
        path = registry.main_database()  # another thread may have opened it just before
        if path is not None:
            _open_waiting(path)
    else:
        shared.open(path)
        watch(shared)
    return shared


def _known_one(name: str, plan: RolloutPlan, path: Path | None) -> SharedRollout | None:
    for other in _rollouts():
        if other.path == path and (other.name == name or other.plan.agent == plan.agent):
            known = _same(other, name, plan)
            if known is not None:
                return known
    return None


def _rollouts() -> list[SharedRollout]:
    with _KnownRollouts.lock:
        return list(_KnownRollouts.known)


def limits_of(name: str, arm: str) -> Limits:
    """Return the limits of an arm, if this process has its rollout."""
    return next((shared.limits.get(arm, ()) for shared in _rollouts() if shared.name == name), ())


def _same(other: SharedRollout, name: str, plan: RolloutPlan) -> SharedRollout | None:
    """Return an equal rollout, None if it has ended; E111 otherwise."""
    if other.name == name:
        different = other.plan.difference(plan)
        if different is None:
            return other
        reason = f"this process has a rollout of this name with other {different}; give it another name"
        raise RolloutConflictError(rollout=name, reason=reason)
    other.refresh()
    if other.state is None or other.state.status == "running":
        reason = (
            f"this process has the rollout {other.name!r} of the agent {plan.agent!r}; "
            "promote or stop it first, or compare all arms in one rollout"
        )
        raise RolloutConflictError(rollout=name, reason=reason)
    return None


def follow(path: Path, state: RolloutState) -> None:
    """Apply a state immediately that this process has just stored."""
    resolved = path.resolve()
    for shared in _rollouts():
        if shared.path == resolved and shared.name == state.name and shared.state is not None:
            shared.accept(state)


def _open_waiting(path: Path) -> None:
    for shared in _rollouts():
        if shared.path is None:
            shared.open(path.resolve())
            watch(shared)
