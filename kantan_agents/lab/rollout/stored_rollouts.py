"""Reads rollouts and their history, without the packages of the verdicts."""

from __future__ import annotations

import os

from kantan_agents.lab.experiment.database import database_of
from kantan_agents.lab.rollout.state.rows import RolloutChange, RolloutState, read_history, read_states
from kantan_agents.traces.store import TraceStore

Store = TraceStore | str | os.PathLike[str] | None


def rollouts(store: Store = None) -> list[RolloutState]:
    """Return the rollouts in a trace database, the latest first.

    Args:
        store: The database: a ``TraceStore`` or a path; None for the one of ``record_traces``.

    Raises:
        InvalidOptionError: E75, there is no database.
        TraceDatabaseError: E60, the file cannot be read.
    """
    return read_states(database_of(store))


def history(name: str, store: Store = None) -> list[RolloutChange]:
    """Return the changes of a rollout with their evidence, the oldest first.

    Args:
        name: Name of the rollout, or of an agent for its latest one.
        store: The database: a ``TraceStore`` or a path; None for the one of ``record_traces``.

    Raises:
        InvalidOptionError: E75, there is no database.
        RolloutNotFoundError: E112, the rollout is missing.
        TraceDatabaseError: E60, the file cannot be read.
    """
    return read_history(database_of(store), name)
