"""Reads the scores of runs that were recorded since the last look."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Final

import attrs

from kantan_agents.lab.rollout.state.tables import RUN_SCORES, has_tables
from kantan_agents.traces.metadata import JUDGE_SPAN
from kantan_agents.traces.store.figures import is_finite
from kantan_agents.traces.store.span_records import mapping_of, parse_time
from kantan_agents.traces.store.verdicts import Answers

RUBRIC: Final = "rubric"
"""The metric of the scores that judges give."""


@attrs.frozen
class RecordedScore:
    """A score; ``place`` is its position in the order of recording."""

    place: int
    run_id: str
    value: float
    at: float


_RUBRICS: Final = (
    "SELECT rowid AS place, id, trace_id, rubric_json, ended_at FROM spans "
    "WHERE rowid > ? AND name = ? AND span_type = 'custom' ORDER BY rowid"
)
_OWN: Final = (
    f"SELECT id, run_id, value, created_at FROM {RUN_SCORES} WHERE id > ? AND metric = ? ORDER BY id"  # noqa: S608
)


def new_scores(connection: sqlite3.Connection, since: int, metric: str) -> Iterator[RecordedScore]:
    """Yield the scores of a metric in the order of recording."""
    if metric == RUBRIC:
        yield from _rubrics(connection, since)
    elif has_tables(connection):
        for place, run_id, value, at in connection.execute(_OWN, (since, metric)).fetchall():
            yield RecordedScore(place, run_id, value, _seconds(at))


def _seconds(text: str | None) -> float:
    moment = parse_time(text)
    return 0.0 if moment is None else moment.timestamp()


def _rubrics(connection: sqlite3.Connection, since: int) -> Iterator[RecordedScore]:
    rows = connection.execute(_RUBRICS, (since, JUDGE_SPAN)).fetchall()
    answers = Answers(connection) if rows else None
    for row in rows:
        score = mapping_of(row["rubric_json"]).get("score")
        if answers is None or not isinstance(score, (int, float)) or not is_finite(score):
            continue
        run = answers.judged_by(row["trace_id"], row["id"])
        run_id = None if run is None else run.metadata.get("agent_run_id")
        if isinstance(run_id, str):
            yield RecordedScore(row["place"], run_id, float(score), _seconds(row["ended_at"]))
