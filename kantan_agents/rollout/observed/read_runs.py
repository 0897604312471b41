"""Reads the runs of a rollout that have ended since the last look."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kantan_agents.replay.experiment.prices import Prices
from kantan_agents.rollout.observed.costs import CostReader
from kantan_agents.rollout.observed.run import Drawn, ObservedRun, drawn_of, reason_not_drawn
from kantan_agents.rollout.plan import Plan
from kantan_agents.tracing.metadata import RUN_SPAN
from kantan_agents.tracing.store.runs import run_data
from kantan_agents.tracing.store.span_records import light_span, mapping_of, parse_time

# The span that ends a run, and the span of a run inside another trace. The word is only looked for: the
# metadata decide whether a run is of this rollout.
_ENDED: Final = """SELECT s.rowid AS place, s.id AS span, s.trace_id, s.error_json, t.metadata_json,
(SELECT MIN(f.started_at) FROM spans f WHERE f.trace_id = t.id) AS began, s.ended_at
FROM spans s CROSS JOIN traces t ON t.id = s.trace_id
WHERE s.rowid > ? AND s.name IS NULL AND s.span_type = 'generation' AND s.parent_id IS NULL
AND instr(t.metadata_json, '"rollout"') ORDER BY s.rowid"""
_INNER: Final = f"""SELECT s.rowid AS place, s.trace_id, s.id, s.started_at, s.ended_at, s.error_json,
s.raw_json FROM spans s WHERE s.rowid > ? AND s.name = '{RUN_SPAN}' AND s.span_type = 'custom'
AND instr(s.raw_json, '"rollout"') ORDER BY s.rowid"""  # noqa: S608

_BEGUN: Final = """SELECT t.rowid AS place, t.metadata_json FROM traces t
WHERE t.rowid > ? AND instr(t.metadata_json, '"rollout"') ORDER BY t.rowid"""

Placed = tuple[int, ObservedRun]
"""A run with its place in the order in which runs have ended."""


def ended_runs(connection: sqlite3.Connection, since: int, name: str, plan: Plan) -> list[Placed]:
    """Return the runs of a rollout that have ended, in the order in which they did.

    A run that was cancelled has failed: a service cancels the runs that take too long. It would have taken at
    least as long as it did.

    Args:
        connection: From ``reading``.
        since: The place of the last run that is known.
        name: Name of the rollout.
        plan: Its plan.
    """
    needs_costs = bool(plan.prices.of_models) or any(one.kind in ("cost", "tokens") for one in plan.guards)
    costs = CostReader(connection, plan.prices if needs_costs else Prices()) if needs_costs else None
    found = [*_outermost(connection, since, name, plan, costs), *_inner(connection, since, name, plan, costs)]
    return sorted(found, key=lambda placed: placed[0])


def begun_runs(
    connection: sqlite3.Connection, since: int, name: str, plan: Plan
) -> Iterator[tuple[int, Drawn]]:
    """Yield the runs of a rollout that have begun, each with the place of its trace.

    Those inside another trace are not among them: the database has them when they have ended.

    Args:
        connection: From ``reading``.
        since: The place of the last trace that is known.
        name: Name of the rollout.
        plan: Its plan.
    """
    for row in connection.execute(_BEGUN, (since,)).fetchall():
        drawn = drawn_of(mapping_of(row["metadata_json"]), name, plan)
        if drawn is not None:
            yield row["place"], drawn


def count_not_drawn(connection: sqlite3.Connection, since: int, name: str) -> Counter[str]:
    """Return how many runs have ended for which no arm was drawn, by reason.

    Args:
        connection: From ``reading``.
        since: The place of the last run that is known.
        name: Name of the rollout.
    """
    rows = connection.execute(_ENDED, (since,)).fetchall()
    reasons = (reason_not_drawn(mapping_of(row["metadata_json"]), name) for row in rows)
    return Counter(reason for reason in reasons if reason is not None)


def _outermost(
    connection: sqlite3.Connection, since: int, name: str, plan: Plan, costs: CostReader | None
) -> Iterator[Placed]:
    for row in connection.execute(_ENDED, (since,)).fetchall():
        drawn = drawn_of(mapping_of(row["metadata_json"]), name, plan)
        if drawn is not None:
            yield row["place"], _run(drawn, row["trace_id"], row, row["began"], costs, None)


def _inner(
    connection: sqlite3.Connection, since: int, name: str, plan: Plan, costs: CostReader | None
) -> Iterator[Placed]:
    for row in connection.execute(_INNER, (since,)).fetchall():
        values = (row["id"], row["trace_id"], None, "custom", RUN_SPAN, None, None, 0)
        span = light_span((*values, None, None, None, row["raw_json"], None, None))
        drawn = drawn_of(run_data(span), name, plan)
        if drawn is not None and row["ended_at"] is not None:
            yield row["place"], _run(drawn, row["trace_id"], row, row["started_at"], costs, drawn.run_id)


def _run(
    drawn: Drawn, trace_id: str, row: sqlite3.Row, began: Any, costs: CostReader | None, only: str | None
) -> ObservedRun:
    failed = bool(mapping_of(row["error_json"]))
    is_long = not failed or _was_cancelled(row["error_json"])
    start, end = parse_time(began), parse_time(row["ended_at"])
    seconds = (end - start).total_seconds() if start is not None and end is not None else None
    used = None if costs is None else costs.used_in(trace_id, only)
    return ObservedRun(
        drawn,
        failed,
        # A clock that was set back makes a duration meaningless.
        seconds if is_long and seconds is not None and seconds >= 0 else None,
        None if used is None else used.tokens,
        None if used is None else used.cost,
    )


def _was_cancelled(error_json: Any) -> bool:
    data: Mapping[str, Any] = mapping_of(mapping_of(error_json).get("data"))
    return data.get("error_type") == "CancelledError"
