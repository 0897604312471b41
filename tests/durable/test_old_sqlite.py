"""SQLite before 3.42, with a Python for which DBOS expects a later one."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from kantan_agents.durable.engines.old_sqlite import give_clock


def test_sqlite_has_the_clock_that_dbos_asks_for(tmp_path: Path) -> None:
    give_clock()
    engine = create_engine(f"sqlite:///{tmp_path / 'clock.db'}")
    before = time.time()
    with engine.begin() as connection:
        column = "at INTEGER NOT NULL DEFAULT (unixepoch('subsec') * 1000)"
        connection.execute(text(f"CREATE TABLE runs (id, {column})"))
        connection.execute(text("INSERT INTO runs (id) VALUES (1)"))
        stored = connection.execute(text("SELECT at FROM runs")).scalar_one()
    engine.dispose()
    assert before - 0.01 <= stored / 1000 <= time.time() + 0.01


@pytest.mark.parametrize("moment", ["2026-01-31", "2026-01-31 12:34:56.789", 2461000.5, "nonsense", None])
def test_the_clock_leaves_the_sql_of_the_application_as_it_was(tmp_path: Path, moment: object) -> None:
    give_clock()
    engine = create_engine(f"sqlite:///{tmp_path / 'clock.db'}")
    with engine.begin() as connection:
        query = text("SELECT unixepoch(:moment), CAST(strftime('%s', :moment) AS INTEGER)")
        answered, expected = connection.execute(query, {"moment": moment}).one()
    engine.dispose()
    assert answered == expected
