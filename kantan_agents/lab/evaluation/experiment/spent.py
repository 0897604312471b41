"""Usage of an evaluation in all of its starts, including failed attempts."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from kantan_agents.lab.evaluation.experiment.rows import EvaluationRow
from kantan_agents.lab.evaluation.experiment.tables import RESULTS
from kantan_agents.lab.experiment.prices import UsageMetrics
from kantan_agents.traces.schema import count_existing
from kantan_agents.traces.store.connection import changing, reading, transaction

RUNS: Final = ""
"""The runs of a variant, instead of an evaluator's name."""

SpentBy = Mapping[tuple[str, str], UsageMetrics]
"""By the hash of a variant, and the name of an evaluator or ``RUNS``."""

SPENT: Final = "kantan_agents_evaluation_spent"
"""One row for each variant and spender. The cost only covers calls with a price."""

_STATEMENTS: Final = (
    (
        f"CREATE TABLE IF NOT EXISTS {SPENT}(evaluation INTEGER NOT NULL, variant_hash TEXT NOT NULL, "
        "spender TEXT NOT NULL, input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, cost REAL, "
        "PRIMARY KEY(evaluation, variant_hash, spender)) WITHOUT ROWID"
    ),
    (
        "CREATE TRIGGER IF NOT EXISTS kantan_agents_spent_of_evaluation_deleted "  # noqa: S608
        "AFTER DELETE ON kantan_agents_evaluations "
        f"BEGIN DELETE FROM {SPENT} WHERE evaluation = OLD.id; END"
    ),
)


def open_spent(path: Path, evaluation: EvaluationRow) -> SpentBy:
    """Return the usage of earlier starts; of an earlier version, only stored runs are known."""
    with changing(path) as connection, transaction(connection):
        for statement in _STATEMENTS:
            connection.execute(statement)
        found: SpentBy = _read(connection, evaluation)
        if not found:
            found = _of_results(connection, evaluation)
            add_spent(connection, evaluation.id, found)
        return found


def read_spent(path: Path, evaluation: EvaluationRow) -> SpentBy:
    """Return the usage; empty for an evaluation of an earlier version."""
    with reading(path, by_trace=False, with_views=False) as connection:
        return _read(connection, evaluation) if count_existing(connection, (SPENT,)) else {}


def add_spent(connection: sqlite3.Connection, evaluation: int, spent: SpentBy) -> None:
    """Add the usage since the last call; the caller controls the transaction."""
    connection.executemany(
        f"INSERT INTO {SPENT} VALUES (?, ?, ?, ?, ?, ?) "  # noqa: S608
        "ON CONFLICT(evaluation, variant_hash, spender) DO UPDATE SET "
        f"input_tokens = {SPENT}.input_tokens + excluded.input_tokens, "
        f"output_tokens = {SPENT}.output_tokens + excluded.output_tokens, "
        f"cost = CASE WHEN excluded.cost IS NULL THEN {SPENT}.cost "
        f"ELSE COALESCE({SPENT}.cost, 0) + excluded.cost END",
        [(evaluation, *key, used.input_tokens, used.output_tokens, used.cost) for key, used in spent.items()],
    )


def total(used: Iterable[UsageMetrics]) -> UsageMetrics:
    """Return the sum; its cost only covers calls with a price."""
    found = list(used)
    costs = [one.cost for one in found if one.cost is not None]
    return UsageMetrics(
        input_tokens=sum(one.input_tokens for one in found),
        output_tokens=sum(one.output_tokens for one in found),
        cost=math.fsum(costs) if costs else None,
    )


def amounts_of(spent: SpentBy) -> dict[str, float]:
    """Return all tokens and the known cost."""
    used = total(spent.values())
    return {"tokens": used.tokens, "cost": used.cost or 0.0}


def _of_results(connection: sqlite3.Connection, evaluation: EvaluationRow) -> SpentBy:
    found: dict[tuple[str, str], list[UsageMetrics]] = {}
    query = f"SELECT variant_hash, body FROM {RESULTS} WHERE evaluation = ?"  # noqa: S608
    for row in connection.execute(query, (evaluation.id,)):
        body = json.loads(row["body"])
        used = UsageMetrics(
            input_tokens=body["input_tokens"], output_tokens=body["output_tokens"], cost=body["cost"]
        )
        found.setdefault((row["variant_hash"], RUNS), []).append(used)
    return {key: total(used) for key, used in found.items()}


def _read(connection: sqlite3.Connection, evaluation: EvaluationRow) -> dict[tuple[str, str], UsageMetrics]:
    query = f"SELECT * FROM {SPENT} WHERE evaluation = ?"  # noqa: S608
    rows: list[Any] = connection.execute(query, (evaluation.id,)).fetchall()
    return {
        (row["variant_hash"], row["spender"]): UsageMetrics(
            input_tokens=row["input_tokens"] or 0, output_tokens=row["output_tokens"] or 0, cost=row["cost"]
        )
        for row in rows
    }
