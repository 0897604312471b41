"""Reads the runs of a rollout that have ended since the last look."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kantan_agents.lab.rollout.observed.costs import CostReader
from kantan_agents.lab.rollout.observed.run import Drawn, ObservedRun, drawn_of, reason_not_drawn
from kantan_agents.lab.rollout.plan import Plan
from kantan_agents.traces.metadata import RUN_SPAN
from kantan_agents.traces.store.runs import run_data
from kantan_agents.traces.store.span_records import light_span, mapping_of, parse_time

# The span that ends a run, and the span of a run inside another trace. The word is only looked for: the
# metadata decide whether a run is of this rollout.
_ENDED: Final = """SELECT s.trace_id, s.error_json, t.metadata_json,
(SELECT MIN(f.started_at) FROM spans f WHERE f.trace_id = t.id) AS began, s.ended_at
FROM spans s CROSS JOIN traces t ON t.id = s.trace_id
WHERE s.rowid > ? AND s.name IS NULL AND s.span_type = 'generation' AND s.parent_id IS NULL
AND instr(t.metadata_json, '"rollout"')"""
_INNER: Final = f"""SELECT s.trace_id, s.id, s.started_at, s.ended_at, s.error_json,
s.raw_json FROM spans s WHERE s.rowid > ? AND s.name = '{RUN_SPAN}' AND s.span_type = 'custom'
AND instr(s.raw_json, '"rollout"')"""  # noqa: S608

_BEGUN: Final = """SELECT t.rowid AS place, t.metadata_json FROM traces t
WHERE t.rowid > ? AND instr(t.metadata_json, '"rollout"') ORDER BY t.rowid"""


def ended_runs(
    connection: sqlite3.Connection, since: int, name: str, plan: Plan
) -> tuple[list[ObservedRun], Counter[str]]:
    """Return the runs of a rollout that have ended, and how many have no drawn arm, by reason.

    A run that was cancelled has failed: a service cancels the runs that take too long. It would have taken at
    least as long as it did.

    Args:
        connection: From ``reading``.
        since: The place of the last span that is known.
        name: Name of the rollout.
        plan: Its plan.
    """
    needs_costs = bool(plan.prices.of_models) or any(one.kind in ("cost", "tokens") for one in plan.guards)
    costs = CostReader(connection, plan.prices) if needs_costs else None
    found: list[ObservedRun] = []
    not_drawn: Counter[str] = Counter()
    for row in connection.execute(_ENDED, (since,)).fetchall():
        metadata = mapping_of(row["metadata_json"])
        drawn, reason = drawn_of(metadata, name, plan), reason_not_drawn(metadata, name)
        if drawn is not None:
            found.append(_run(drawn, row["trace_id"], row, row["began"], costs, None))
        elif reason is not None:
            not_drawn[reason] += 1
    found += _inner(connection, since, name, plan, costs)
    return found, not_drawn


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


def _inner(
    connection: sqlite3.Connection, since: int, name: str, plan: Plan, costs: CostReader | None
) -> Iterator[ObservedRun]:
    for row in connection.execute(_INNER, (since,)).fetchall():
        values = (row["id"], row["trace_id"], None, "custom", RUN_SPAN, None, None, 0)
        span = light_span((*values, None, None, None, row["raw_json"], None, None))
        drawn = drawn_of(run_data(span), name, plan)
        if drawn is not None and row["ended_at"] is not None:
            yield _run(drawn, row["trace_id"], row, row["started_at"], costs, drawn.run_id)


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
