"""The figures kept for each trace: statistics and plans equal those computed from the spans."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import SQLiteRecorder, TraceStore
from kantan_agents.testing import ScriptedModel, assistant_message
from kantan_agents.traces.figure_tables import CHANGED, count_changed, has_figures
from kantan_agents.traces.recorder import catch_up
from kantan_agents.traces.store import store_figures
from tests.sizes import examples
from tests.traces.store.sample_database import Exported, SampleDatabase, open_sample

FIGURE_TABLES = (
    "SELECT type, name FROM sqlite_master WHERE name LIKE 'kantan_agents_%' AND type IN ('table', 'trigger') "
    # The records of runs have tables of their own.
    "AND name != 'kantan_agents_runs' AND name NOT LIKE 'kantan_agents_record_%' "
    "AND name NOT LIKE 'kantan_agents_content%'"
)


def from_scratch(path: Path) -> list[Any]:
    """Return what a copy of the file gives that keeps no figures."""
    with TemporaryDirectory() as directory:
        copy = Path(directory) / "copy.sqlite3"
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
            for kind, name in target.execute(FIGURE_TABLES).fetchall():
                target.execute(f"DROP {kind} IF EXISTS {name}")
            target.commit()
            assert not has_figures(target)
        return figures(copy)


def figures(path: Path) -> list[Any]:
    store = TraceStore(path)
    planned = store.prune(keep=1, dry_run=True)
    return [store.prompts(), store.prompts("p"), (planned.traces, planned.spans)]


def changed(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return count_changed(connection)


def sql(statement: str) -> Callable[[SampleDatabase, int, int], None]:
    def execute(database: SampleDatabase, one: int, other: int) -> None:
        with database.tracer._conn as connection:
            connection.execute(statement, {"one": one, "other": other})

    return execute


def run(database: SampleDatabase, one: int, other: int) -> None:
    error = {"message": "broke", "data": None} if one == 2 else None
    database.run(prompt_name="pq"[one % 2], prompt_version=f"v{other % 2}", error=error)


def inner_runs(database: SampleDatabase, one: int, other: int) -> None:
    trace_id = database.trace(metadata={"prompt_name": "p"} if one else None)
    around = database.inner_run(trace_id, agent_run_id="r1", prompt_name="p", prompt_version=one)
    database.inner_run(trace_id, agent_run_id="r2", prompt_name="q", parent=around)
    database.span(
        trace_id, "response", parent=around, usage={"input_tokens": one, "output_tokens": 10**other}
    )


def judge(database: SampleDatabase, one: int, other: int) -> None:
    trace_ids = sorted(
        row[0] for row in database.tracer._conn.execute("SELECT id FROM traces WHERE id IS NOT NULL")
    )
    named = {"judged_trace_id": trace_ids[one % len(trace_ids)]} if trace_ids and other % 2 else {}
    database.judge(database.run(prompt_name="quality", **named), one / 3)


def prune(database: SampleDatabase, one: int, other: int) -> None:
    def interrupt(done: int, total: int) -> None:
        if done >= other:
            raise KeyboardInterrupt

    database.tracer._conn.commit()
    with suppress(KeyboardInterrupt):
        TraceStore(database.path).prune(keep=one, progress=interrupt)


def keep_some(database: SampleDatabase, one: int, other: int) -> None:
    store_figures.keep_changed(database.path, 0 if one else 60)


ACTIONS = {
    "run": run,
    "inner runs": inner_runs,
    "judge": judge,
    "prune": prune,
    "keep": keep_some,
    "update": sql("UPDATE spans SET error_json = '{\"message\": 1}' WHERE rowid % 3 = :one"),
    "move": sql("UPDATE spans SET trace_id = (SELECT id FROM traces LIMIT 1) WHERE rowid % 5 = :one"),
    "delete spans": sql("DELETE FROM spans WHERE rowid % 4 = :one"),
    "delete traces": sql("DELETE FROM traces WHERE rowid % 4 = :one"),
    "metadata": sql('UPDATE traces SET metadata_json = \'{"prompt_name": "p"}\' WHERE rowid % 4 = :one'),
    "replace": sql(
        "INSERT OR REPLACE INTO spans(id, trace_id, span_type, started_at) SELECT id, (SELECT id FROM traces "
        "ORDER BY rowid DESC LIMIT 1), 'generation', '2025-01-01T00:00:00' FROM spans WHERE rowid % 4 = :one"
    ),
    "fail": sql(
        "INSERT OR FAIL INTO spans(id, trace_id) SELECT 'x' || id || (SELECT COUNT(*) FROM spans), id "
        "FROM traces LIMIT :other"
    ),
    "odd": sql(
        "INSERT OR REPLACE INTO traces(id, metadata_json) VALUES ('odd' || :one, "
        """'{"prompt_name": "p", "usage_total": {"total_tokens": 1e300, "input_tokens": NaN}}')"""
    ),
    "no id": sql('INSERT INTO traces(id, metadata_json) VALUES (NULL, \'{"prompt_name": "p"}\')'),
    "number": sql('INSERT OR IGNORE INTO traces(id, metadata_json) VALUES (:one, \'{"prompt_name": "q"}\')'),
}


@examples(15)
@given(
    steps=st.lists(st.tuples(st.sampled_from([*ACTIONS]), st.integers(0, 3), st.integers(0, 3)), max_size=8)
)
def test_whoever_changes_the_file_statistics_equal_those_computed_from_its_spans(
    steps: list[tuple[str, int, int]],
) -> None:
    with TemporaryDirectory() as directory, open_sample(Path(directory) / "t.db") as database:
        for name, one, other in steps:
            ACTIONS[name](database, one, other)
        for _ in range(2):
            assert figures(database.path) == from_scratch(database.path)
            while store_figures.keep_changed(database.path, 60):
                continue


def test_figures_that_are_kept_need_no_span(tmp_path: Path) -> None:
    with open_sample(tmp_path / "t.db") as database:
        database.judge(database.run(prompt_name="p", prompt_version="v1"), 0.5)
        run(database, 2, 1)
        before = TraceStore(database.path).prompts()
        store_figures.keep_changed(database.path, 60)
        with database.tracer._conn as connection:
            # Without the note of a trigger, only the spans themselves could show the change.
            connection.execute("DELETE FROM spans")
            connection.execute(f"DELETE FROM {CHANGED}")
        assert TraceStore(database.path).prompts() == before


def test_figures_without_their_triggers_are_not_used(tmp_path: Path) -> None:
    with open_sample(tmp_path / "t.db") as database:
        run(database, 0, 0)
        store_figures.keep_changed(database.path, 60)
        with database.tracer._conn as connection:
            connection.execute("DROP TRIGGER kantan_agents_span_deleted")
            connection.execute("DELETE FROM spans")
        assert figures(database.path) == from_scratch(database.path)
        assert not has_figures(database.tracer._conn)


async def test_the_recorder_keeps_the_figures_of_a_file_that_an_earlier_version_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kantan_agents import Agent, Prompt, set_trace_processors

    monkeypatch.setattr(catch_up, "FIGURES_AT_ONCE", 1)
    with open_sample(tmp_path / "t.db", indexed=False) as database:
        for number in range(5):
            run(database, number, number)
    recorder = SQLiteRecorder(tmp_path / "t.db")
    set_trace_processors([recorder])
    model = ScriptedModel([[assistant_message("fine")]])
    await Agent("a", Prompt("new", "v1", "text"), model=model).run_async("hi")
    recorder.shutdown()
    assert changed(tmp_path / "t.db") == 0
    assert figures(tmp_path / "t.db") == from_scratch(tmp_path / "t.db")
    assert {stats.prompt_name for stats in TraceStore(tmp_path / "t.db").prompts()} == {"p", "q", "new"}


def test_figures_that_sqlite_cannot_store_are_computed_when_they_are_read(tmp_path: Path) -> None:
    with open_sample(tmp_path / "t.db") as database:
        database.trace("odd", {"prompt_name": "p", "usage_total": {"total_tokens": 10**30}})
        run(database, 0, 0)
        assert not store_figures.keep_changed(database.path, 60)
        assert changed(database.path) == 0
        assert sum(stats.total_tokens for stats in TraceStore(database.path).prompts()) == 10**30


def test_a_copy_of_the_tables_of_kantan_llm_alone_is_read_too(tmp_path: Path) -> None:
    with open_sample(tmp_path / "t.db") as database:
        run(database, 0, 0)
        store_figures.keep_changed(database.path, 60)
    shutil.copy(tmp_path / "t.db", tmp_path / "copy.db")
    with closing(sqlite3.connect(tmp_path / "copy.db")) as connection:
        connection.execute("DROP TABLE spans")
        connection.execute("DROP TABLE traces")
    with open_sample(tmp_path / "copy.db") as database:
        assert TraceStore(database.path).prompts() == []
        run(database, 1, 1)
        assert [stats.prompt_name for stats in TraceStore(database.path).prompts()] == ["q"]


def test_figures_are_removed_with_their_triggers_first_and_other_tracers_go_on(tmp_path: Path) -> None:
    with open_sample(tmp_path / "t.db") as database:
        run(database, 0, 0)
        store_figures.keep_changed(database.path, 60)
        with database.tracer._conn as connection:
            found = connection.execute(FIGURE_TABLES).fetchall()
            for kind, name in sorted(found, key=lambda row: row[0] != "trigger"):
                connection.execute(f"DROP {kind} IF EXISTS {name}")
        run(database, 1, 1)
        assert {stats.prompt_name for stats in TraceStore(database.path).prompts()} == {"p", "q"}


def test_the_recorder_repairs_a_file_whose_tables_of_figures_were_dropped_while_it_was_open(
    tmp_path: Path,
) -> None:
    path = tmp_path / "t.db"
    recorder = SQLiteRecorder(path)
    recorder.on_trace_start(Exported({"id": "trace_1", "workflow_name": "w", "metadata": None}))
    assert recorder.force_flush(60)
    with closing(sqlite3.connect(path)) as connection:
        for kind, name in connection.execute(FIGURE_TABLES).fetchall():
            if kind == "table":
                connection.execute(f"DROP TABLE {name}")
        connection.commit()
    recorder.on_trace_start(Exported({"id": "trace_2", "workflow_name": "w", "metadata": None}))
    assert recorder.force_flush(60)
    recorder.shutdown()
    with closing(sqlite3.connect(path)) as connection:
        assert has_figures(connection)
        assert count_changed(connection) == 2
