"""What the model calls of recorded runs have used and cost, from their complete records."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from kantan_agents.lab.replay.experiment.prices import Prices
from kantan_agents.traces.capture.canonical import decode
from kantan_agents.traces.kept_records import RUNS
from kantan_agents.traces.store.run_records import READING_ERRORS, Contents, has_run_tables
from kantan_agents.traces.store.used_tokens import whole_number


@attrs.frozen
class Used:
    """What model calls have used.

    Attributes:
        tokens: Input and output tokens; None if one call does not say it.
        cost: Their price; None if it is not known.
    """

    tokens: int | None
    cost: float | None


class CostReader:
    """Reads what runs have used.

    Args:
        connection: A connection to the file.
        prices: Prices by model.
    """

    def __init__(self, connection: sqlite3.Connection, prices: Prices) -> None:
        self._connection = connection
        self._prices = prices
        self._contents = Contents(connection) if has_run_tables(connection) else None

    def used_in(self, trace_id: str, run_id: str | None = None) -> Used | None:
        """Return what the runs in a trace have used together; None without a record.

        Args:
            trace_id: Id of the trace.
            run_id: The only run that counts; None for all.
        """
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
        return Used(tokens, cost)

    def _of_record(self, body: Mapping[str, Any], ids: Sequence[int]) -> Used:
        tokens = 0
        cost: float | None = self._prices.nothing
        is_known = True
        for call in body["model_calls"]:
            answer = call.get("answer")
            usage = {} if answer is None else answer.get("usage") or {}
            pair = [max(0, whole_number(usage.get(kind))) for kind in ("input_tokens", "output_tokens")]
            if not any(pair):
                # A call that was refused with an error has cost nothing.
                is_known = is_known and answer is None and not call.get("broke_off")
                continue
            tokens += sum(pair)
            assert self._contents is not None
            model = self._contents.get(ids[call["model"]])
            price = self._prices.cost(model.get("model"), *pair, provider=model.get("provider"))
            cost = None if cost is None or price is None else cost + price
        return Used(tokens, cost) if is_known else Used(None, None)
