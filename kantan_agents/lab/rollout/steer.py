"""Reads and changes rollouts, for Python and for the command line."""

from __future__ import annotations

from anyio import to_thread

from kantan_agents.lab.experiment.database import database_of
from kantan_agents.lab.rollout.live.process_rollouts import follow
from kantan_agents.lab.rollout.observed.samples import Samples
from kantan_agents.lab.rollout.state.change import promote as promote_in
from kantan_agents.lab.rollout.state.change import stop as stop_in
from kantan_agents.lab.rollout.state.rows import RolloutState, find_state
from kantan_agents.lab.rollout.stored_rollouts import Store
from kantan_agents.lab.rollout.verdict.judge import judge_rollout
from kantan_agents.lab.rollout.verdict.status import RolloutStatus, evidence_of
from kantan_agents.support.arguments import checked_text
from kantan_agents.support.secrets import mask
from kantan_agents.traces.registry import flush_recorders


def status(name: str, store: Store = None) -> RolloutStatus:
    """Return the status of a rollout: its metrics, the evidence and the verdict.

    The tests hold however often you look.

    Args:
        name: Name of the rollout, or of an agent for its latest one.
        store: The database: a ``TraceStore`` or a path; None for the one of ``record_traces``.

    Raises:
        InvalidOptionError: E75, there is no database.
        RolloutNotFoundError: E112, the rollout is missing.
        TraceDatabaseError: E60, the file cannot be read.
    """
    path = database_of(store)
    flush_recorders(path)
    state = find_state(path, name)
    samples = Samples(path, state.name, state.plan)
    samples.update()
    return judge_rollout(state, samples)


async def status_async(name: str, store: Store = None) -> RolloutStatus:
    """Do the same as ``status`` without blocking the event loop."""
    return await to_thread.run_sync(status, name, store)


def promote(
    name: str,
    store: Store = None,
    *,
    arm: str | None = None,
    by: str = "code",
    reason: str = "",
    expect_step: int | None = None,
) -> RolloutState:
    """Give the new arms the next share of the ramp; at its end, give all users the new arm.

    Args:
        name: Name of the rollout, or of an agent for its latest one.
        store: The database: a ``TraceStore`` or a path; None for the one of ``record_traces``.
        arm: The arm that all users get immediately; None for the next step.
        by: The author, for the history.
        reason: The reason, for the history.
        expect_step: The step of the ramp that you have seen, from 0 (``RolloutState.step``). With it, two
            concurrent promotions take one step.

    Raises:
        InvalidOptionError: E75, there is no database.
        RolloutNotFoundError: E112, the rollout is missing.
        RolloutStepError: E113, it is not running, has no such arm, or is at another step.
        TraceDatabaseError: E60, the file cannot be changed.

    Returns:
        The new state, which applies in this process immediately, and in every other one within a second.
    """
    path = database_of(store)
    now = status(name, path)
    state = promote_in(
        path,
        now.name,
        arm=arm,
        author=mask(checked_text("by", by)),
        reason=mask(checked_text("reason", reason)) or now.reason,
        evidence=evidence_of(now),
        expect_step=expect_step,
    )
    follow(path, state)
    return state


async def promote_async(
    name: str,
    store: Store = None,
    *,
    arm: str | None = None,
    by: str = "code",
    reason: str = "",
    expect_step: int | None = None,
) -> RolloutState:
    """Do the same as ``promote`` without blocking the event loop."""
    return await to_thread.run_sync(
        lambda: promote(name, store, arm=arm, by=by, reason=reason, expect_step=expect_step)
    )


def stop(name: str, store: Store = None, *, by: str = "code", reason: str = "") -> RolloutState:
    """Give all users the control again.

    Args:
        name: Name of the rollout, or of an agent for its latest one.
        store: The database: a ``TraceStore`` or a path; None for the one of ``record_traces``.
        by: The author, for the history.
        reason: The reason, for the history.

    Raises:
        InvalidOptionError: E75, there is no database.
        RolloutNotFoundError: E112, the rollout is missing.
        RolloutStepError: E113, it is stopped already.
        TraceDatabaseError: E60, the file cannot be changed.

    Returns:
        The new state, which applies in this process immediately, and in every other one within a second.
    """
    path = database_of(store)
    author, why = mask(checked_text("by", by)), mask(checked_text("reason", reason))
    # Without the evidence, which may take seconds to read.
    state = stop_in(path, find_state(path, name).name, author=author, reason=why or "it was asked for")
    follow(path, state)
    return state


async def stop_async(name: str, store: Store = None, *, by: str = "code", reason: str = "") -> RolloutState:
    """Do the same as ``stop`` without blocking the event loop."""
    return await to_thread.run_sync(lambda: stop(name, store, by=by, reason=reason))
