"""Exporting traces as plain data."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import RUBRIC, Agent, Prompt, TraceStore
from kantan_agents.errors import InvalidOptionError
from kantan_agents.testing import ScriptedModel, assistant_message
from kantan_agents.testing.strategies import json_values
from kantan_agents.traces.store import export
from tests.sizes import examples
from tests.traces.store.sample_database import SampleDatabase, open_sample

UNCOMPARED = ("metadata", "missing", "rubric", "runs", "spans")


async def test_a_trace_is_one_flat_dict_with_its_spans(traces: Any) -> None:
    model = ScriptedModel([[assistant_message('{"score": 0.5, "comments": ["c"]}')]])
    prompt = Prompt("quality", "v1", "Judge.")
    await Agent("judge", prompt, model=model, output_type=RUBRIC, metadata={"tenant": "acme"}).run_async("q")
    store = TraceStore(traces.path)
    (record,) = store.export()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    trace = store.trace("LAST")
    summary = trace.summary
    assert {key: record[key] for key in record if key not in UNCOMPARED} == {
        "trace_id": summary.trace_id,
        "workflow_name": "Agent workflow",
        "group_id": None,
        "started_at": summary.started_at.isoformat(),
        "ended_at": summary.ended_at.isoformat(),
        "duration": summary.duration,
        "status": "ok",
        "span_count": len(trace.spans),
        "input": "q",
        "output": summary.output,
        "error": None,
        "failed_spans": 0,
        "input_tokens": 0,
        "output_tokens": 0,
        "total_tokens": 0,
        "cut_answers": 0,
        "agent_name": "judge",
        "prompt_name": "quality",
        "prompt_version": "v1",
        "prompt_id": prompt.resolve_id(),
        "agent_run_id": summary.trace_id.removeprefix("trace_"),
    }
    assert record["metadata"]["tenant"] == "acme"
    assert record["rubric"]["score"] == 0.5
    assert [span["span_id"] for span in record["spans"]] == [span.span_id for span in trace.spans]
    assert record["spans"][-2]["name"] == "judge"
    assert datetime.fromisoformat(record["spans"][0]["started_at"]) == trace.spans[0].started_at


def test_traces_are_exported_newest_first_and_filtered(
    db: SampleDatabase, store: TraceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "_PAGE", 2)
    runs = [db.run(f"question {number}", prompt_name="p") for number in range(5)]
    db.run("other")
    assert [record["trace_id"] for record in store.export(prompt="p")] == runs[::-1]
    assert [record["input"] for record in store.export(prompt="p", keywords=["3"])] == ["question 3"]
    assert len([*store.export(limit=3)]) == 3
    assert [*store.export(prompt="none")] == []


@pytest.mark.file_only
def test_traces_deleted_meanwhile_are_left_out(
    db: SampleDatabase, store: TraceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "_PAGE", 1)
    runs = [db.run() for _ in range(3)]
    with closing(store.export()) as records:
        assert next(records)["trace_id"] == runs[2]
        with db.tracer._conn as connection:
            connection.execute("DELETE FROM traces WHERE id = ?", (runs[1],))
        assert [record["trace_id"] for record in records] == [runs[0]]


def test_others_can_write_during_an_export(db: SampleDatabase, store: TraceStore) -> None:
    for _ in range(3):
        db.run()
    with closing(store.export()) as records:
        next(records)
        db.tracer._conn.execute("BEGIN EXCLUSIVE")
        db.tracer._conn.rollback()
        db.run()


async def test_async_code_can_export_and_stop_in_between(
    db: SampleDatabase, store: TraceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "_PAGE", 2)
    runs = [db.run(prompt_name="p") for _ in range(5)]
    assert [record["trace_id"] async for record in store.export_async(prompt="p")] == runs[::-1]
    assert [record["trace_id"] async for record in store.export_async(limit=1)] == runs[4:]
    records = store.export_async()
    assert (await anext(records))["trace_id"] == runs[4]
    await records.aclose()
    with pytest.raises(InvalidOptionError, match="limit"):
        store.export_async(limit=0)


@examples(15)
@given(metadata=st.dictionaries(st.text(max_size=3), json_values() | st.just(float("nan")), max_size=3))
def test_any_metadata_is_exported_as_json_without_loss(
    metadata: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with open_sample(tmp_path_factory.mktemp("export") / "t.db") as database:
        database.span(database.trace(metadata=metadata), output=metadata)
        (record,) = TraceStore(database.path).export()
    json.dumps(record, allow_nan=False)
    expected = {key: None if value != value else value for key, value in metadata.items()}
    assert record["metadata"] == record["spans"][0]["raw"]["span_data"]["output"] == expected


def test_a_store_accepts_a_path_as_str(tmp_path: Path) -> None:
    with open_sample(tmp_path / "t.db") as database:
        assert [*TraceStore(str(database.path)).export()] == []
