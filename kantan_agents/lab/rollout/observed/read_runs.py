"""Reads the runs that have ended since the last look."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from kantan_agents.core.usage import tokens_of
from kantan_agents.lab.experiment.prices import Prices
from kantan_agents.lab.rollout.observed.observed_run import Drawn, ObservedRun, drawn_of, reason_not_drawn
from kantan_agents.lab.rollout.plan import RolloutPlan
from kantan_agents.traces.capture.canonical import decode
from kantan_agents.traces.metadata import RUN_SPAN
from kantan_agents.traces.record_tables import RUNS
from kantan_agents.traces.store.run_records import READING_ERRORS, Contents, has_run_tables
from kantan_agents.traces.store.runs import run_data
from kantan_agents.traces.store.span_records import light_span, mapping_of, parse_time

# The root span at the end of a run, and the span of a run inside another trace. The word is only a filter:
# the metadata determine whether a run is of this rollout.
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
    connection: sqlite3.Connection, since: int, name: str, plan: RolloutPlan
) -> tuple[list[ObservedRun], Counter[str]]:
    """Return the finished runs, and the number of runs without an assigned arm, by reason.

    A canceled run has failed: a service cancels runs that take too long.
    """
    needs_costs = bool(plan.prices.of_models) or any(one.kind in ("cost", "tokens") for one in plan.guards)
    costs = _CostReader(connection, plan.prices) if needs_costs else None
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
    connection: sqlite3.Connection, since: int, name: str, plan: RolloutPlan
) -> Iterator[tuple[int, Drawn]]:
    """Yield the started runs; runs inside another trace are in the database only when they end."""
    for row in connection.execute(_BEGUN, (since,)).fetchall():
        drawn = drawn_of(mapping_of(row["metadata_json"]), name, plan)
        if drawn is not None:
            yield row["place"], drawn


def _inner(
    connection: sqlite3.Connection, since: int, name: str, plan: RolloutPlan, costs: _CostReader | None
) -> Iterator[ObservedRun]:
    for row in connection.execute(_INNER, (since,)).fetchall():
        values = (row["id"], row["trace_id"], None, "custom", RUN_SPAN, None, None, 0)
        span = light_span((*values, None, None, None, row["raw_json"], None, None))
        drawn = drawn_of(run_data(span), name, plan)
        if drawn is not None and row["ended_at"] is not None:
            yield _run(drawn, row["trace_id"], row, row["started_at"], costs, drawn.run_id)


def _run(
    drawn: Drawn, trace_id: str, row: sqlite3.Row, began: Any, costs: _CostReader | None, only: str | None
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
        max(drawn.began, drawn.began if end is None else end.timestamp()),
    )


def _was_cancelled(error_json: Any) -> bool:
    data: Mapping[str, Any] = mapping_of(mapping_of(error_json).get("data"))
    return data.get("error_type") == "CancelledError"


@attrs.frozen
class _Used:
    """Usage; None if a call does not report its tokens, or has no price."""

    tokens: int | None
    cost: float | None


class _CostReader:
    """Reads the usage of runs."""

    def __init__(self, connection: sqlite3.Connection, prices: Prices) -> None:
        self._connection = connection
        self._prices = prices
        self._contents = Contents(connection) if has_run_tables(connection) else None

    def used_in(self, trace_id: str, run_id: str | None = None) -> _Used | None:
        """Return the usage of a trace's runs, or of one run."""
        if self._contents is None:
            return None
        columns = "CAST(contents AS BLOB), CAST(body AS BLOB), CAST(run_id AS BLOB)"
        query = f"SELECT {columns} FROM {RUNS} WHERE trace_id = ?"  # noqa: S608
        rows = self._connection.execute(query, (trace_id,)).fetchall()
        if run_id is not None:
            rows = [row for row in rows if row[2].hex() == run_id]
        if not rows:
            return None
        tokens: int | None = 0
        cost: float | None = self._prices.nothing
        for contents, body, _ in rows:
            try:
                used = self._of_record(decode(body), json.loads(contents))
            except READING_ERRORS:
                return None
            tokens = None if tokens is None or used.tokens is None else tokens + used.tokens
            cost = None if cost is None or used.cost is None else cost + used.cost
        return _Used(tokens, cost)

    def _of_record(self, body: Mapping[str, Any], ids: Sequence[int]) -> _Used:
        tokens = 0
        cost: float | None = self._prices.nothing
        is_known = True
        for call in body["model_calls"]:
            answer = call.get("answer")
            pair = tokens_of(answer)
            if not any(pair):
                # A call that was rejected with an error has cost nothing.
                is_known = is_known and answer is None and not call.get("broke_off")
                continue
            tokens += sum(pair)
            assert self._contents is not None
            model = self._contents.get(ids[call["model"]])
            price = self._prices.cost(model.get("model"), *pair, provider=model.get("provider"))
            cost = None if cost is None or price is None else cost + price
        return _Used(tokens, cost) if is_known else _Used(None, None)
