"""Stores scores of runs from the application or its users."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, Final

from anyio import to_thread

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.experiment.database import database_of, prepare_database
from kantan_agents.lab.rollout.observed.read_scores import RUBRIC
from kantan_agents.lab.rollout.state.tables import RUN_SCORES, create_tables, has_tables
from kantan_agents.lab.rollout.stored_rollouts import Store
from kantan_agents.models.protocol.results import run_id_of
from kantan_agents.support.arguments import shown
from kantan_agents.support.secrets import mask
from kantan_agents.traces.ids import trace_id_of
from kantan_agents.traces.store.connection import changing, transaction

_ID_DIGITS: Final = 32


def record_score(
    run: str | Mapping[str, Any],
    metric: str,
    value: float,
    *,
    comment: str | None = None,
    store: Store = None,
) -> None:
    """Store a score of a run, such as a user's thumb, as the metric of a ``Rollout``.

        context = await agent.run_async("Where is my parcel?", {"user": {"id": "u17"}})
        ...
        record_score(context, "thumb", 1)

    You may call it any time after the run. The first score of a user determines whether an arm is better;
    later ones may show that it is worse.

    Args:
        run: The returned context of the run, or the id of the run.
        metric: Name of the metric.
        value: The score; higher is better.
        comment: The reason.
        store: The trace database: a ``TraceStore`` or a path; None for the one of ``record_traces``.

    Raises:
        InvalidOptionError: E75, an argument has a mistake, or there is no database.
        TraceDatabaseError: E60, the file cannot be changed.
    """
    run_id = _run_id(run)
    if not isinstance(metric, str) or not metric.strip():
        raise InvalidOptionError(option="metric", reason=f"must be a name, not {metric!r}")
    if metric == RUBRIC:
        reason = "must be another name: the scores of judges are called 'rubric'"
        raise InvalidOptionError(option="metric", reason=reason)
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        raise InvalidOptionError(option="value", reason=f"must be a finite number, not {value!r}")
    if comment is not None and not isinstance(comment, str):
        raise InvalidOptionError(option="comment", reason=f"must be a str, not {type(comment).__name__}")
    path = database_of(store)
    prepare_database(path)
    now = datetime.now(timezone.utc).isoformat(timespec="microseconds")
    with changing(path) as connection, transaction(connection):
        if not has_tables(connection):
            create_tables(connection)
        connection.execute(
            f"INSERT INTO {RUN_SCORES}(trace_id, run_id, metric, value, comment, created_at) "  # noqa: S608
            "VALUES (?, ?, ?, ?, ?, ?)",
            (trace_id_of(run_id), run_id, metric, float(value), comment and mask(comment), now),
        )


async def record_score_async(
    run: str | Mapping[str, Any],
    metric: str,
    value: float,
    *,
    comment: str | None = None,
    store: Store = None,
) -> None:
    """Do the same as ``record_score`` without blocking the event loop."""
    await to_thread.run_sync(lambda: record_score(run, metric, value, comment=comment, store=store))


def _run_id(run: Any) -> str:
    found = (
        run if isinstance(run, str) else run_id_of(run.get("result")) if isinstance(run, Mapping) else None
    )
    if isinstance(found, str) and len(found) == _ID_DIGITS:
        return found
    reason = f"must be the context that a run has returned, or its id of 32 hex digits, not {shown(run)}"
    raise InvalidOptionError(option="run", reason=reason)
