"""``record_traces("postgresql://...")``: what is recorded, and what is refused."""

from __future__ import annotations

import logging
import sqlite3
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from kantan_agents import Agent, PostgresRecorder, Prompt, TraceStore, record_traces
from kantan_agents.errors import InvalidOptionError, NotInPostgresError, TraceDatabaseError
from kantan_agents.testing import ScriptedModel, assistant_message
from kantan_agents.traces.database_url import as_url
from kantan_agents.traces.postgres import connection
from kantan_agents.traces.postgres.server_error import ServerError
from kantan_agents.traces.recorder.postgres_recorder import ServerDatabase
from tests.postgres_server import execute, url_of
from tests.traces.postgres.conftest import Start
from tests.traces.postgres.spans import names, record

SECRET = "pa-ss/w:rd?"


async def test_a_run_is_found_with_its_complete_record(postgres_url: str) -> None:
    recorder = record_traces(postgres_url, flush_on_sigterm=False)
    agent = Agent(
        "shop", Prompt("shop", "7", "Be kind."), model=ScriptedModel([[assistant_message("Ja, 猫")]])
    )
    await agent.run_async("Où est mon colis? 📦")
    store = TraceStore(postgres_url)
    (found,) = await store.traces_async(keywords=["COLIS", "猫"], prompt="shop", version="7")
    trace = await store.trace_async(found.trace_id)
    assert trace.is_complete
    assert [call.answer is not None for call in trace.model_calls] == [True]
    (stats,) = await store.prompts_async()
    assert (stats.prompt_name, stats.runs, stats.text) == ("shop", 1, "Be kind.")
    assert isinstance(recorder, PostgresRecorder)
    assert recorder.stats().written == found.spans
    recorder.shutdown()


def test_a_span_that_postgres_cannot_store_is_repaired_and_costs_no_other(
    postgres_url: str, start: Start
) -> None:
    recorder = start(postgres_url)
    record(recorder, "zero", "be\0fore", "half \ud83d")
    record(recorder, "fine")
    assert recorder.force_flush(10)
    store = TraceStore(postgres_url)
    assert names(store) == ["zero", "fine"]
    assert recorder.stats().failed == 0
    assert len(store.traces(keywords=["be\\u0000fore"])) == 1


def test_spans_that_cannot_be_stored_as_they_are_are_written_with_the_others(
    postgres_url: str, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = _counted_writes(monkeypatch)
    recorder = start(postgres_url, flush_interval=60.0)
    for number in range(30):
        record(recorder, f"{number}", f"half \ud83d of {number}", "be\0fore")
    assert recorder.force_flush(30)
    assert (recorder.stats().written, recorder.stats().failed) == (30, 0)
    assert [spans for spans in writes if spans] == [30]


def test_a_row_that_is_refused_costs_itself(
    postgres_url: str, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = _counted_writes(monkeypatch, refused="a bad question")
    recorder = start(postgres_url, flush_interval=60.0)
    for number in range(64):
        record(recorder, f"{number}", "a bad question" if number == 40 else "a question")
    assert recorder.force_flush(30)
    assert (recorder.stats().written, recorder.stats().failed) == (63, 1)
    assert len(writes) < 40  # not one for each row


def _counted_writes(monkeypatch: pytest.MonkeyPatch, refused: str | None = None) -> list[int]:
    """Count the transactions of recorders; those with a span that has a refused text fail."""
    counts: list[int] = []
    write = ServerDatabase.write

    def counting(self: Any, traces: Any, spans: Any, runs: Any = ()) -> None:
        counts.append(len(spans))
        if refused is not None and any(refused in str(span.values) for span in spans):
            raise ServerError("refused", "22000")
        write(self, traces, spans, runs)

    monkeypatch.setattr(ServerDatabase, "write", counting)
    return counts


def test_text_with_a_zero_character_has_the_symbol_for_it(postgres_url: str, start: Start) -> None:
    recorder = start(postgres_url)
    from agents import set_trace_processors
    from agents.tracing import function_span, trace

    set_trace_processors([recorder])
    with trace("zero"), function_span("tool", input="a\0b", output="c"):
        pass
    assert recorder.force_flush(10)
    store = TraceStore(postgres_url)
    (span,) = store.trace("LAST").spans
    assert span.input == "a\N{SYMBOL FOR NULL}b"
    assert len(store.traces(keywords=["a\0b"])) == 1


def test_two_recorders_write_one_trace_in_one_order(postgres_url: str, start: Start) -> None:
    from agents import set_trace_processors
    from agents.tracing import custom_span, trace

    one, two = start(postgres_url), start(postgres_url)
    set_trace_processors([one])
    with trace("both") as current:
        for number in range(10):
            set_trace_processors([(one, two)[number % 2]])
            with custom_span(str(number)):
                pass
            assert one.force_flush(10)
            assert two.force_flush(10)
    spans = TraceStore(postgres_url).trace(current.trace_id).spans
    assert [span.name for span in spans] == [str(number) for number in range(10)]
    assert [span.ingest_seq for span in spans] == [*range(1, 11)]


def test_the_order_is_that_of_storing_whatever_the_clocks_say(postgres_url: str, start: Start) -> None:
    from datetime import datetime, timedelta, timezone

    from agents import set_trace_processors
    from agents.tracing import custom_span, trace

    recorder = start(postgres_url)
    set_trace_processors([recorder])
    for name, hours in (("first", 0), ("an hour ahead", 1), ("an hour behind", -1)):
        with trace(name), custom_span("s") as span:
            moved = datetime.now(timezone.utc) + timedelta(hours=hours)
            span._started_at = moved.isoformat()
        assert recorder.force_flush(10)
    assert names(TraceStore(postgres_url)) == ["first", "an hour ahead", "an hour behind"]


def test_secrets_are_masked_and_content_is_redacted(postgres_url: str, start: Start) -> None:
    recorder = start(postgres_url, redact=lambda data: None if "hidden" in str(data) else data)
    record(recorder, "open", "my key is sk-" + "a1B2" * 12)
    record(recorder, "secret", "hidden words")
    assert recorder.force_flush(10)
    stored = str(execute(postgres_url, "SELECT * FROM spans"))
    assert "a1B2a1B2" not in stored
    assert "hidden" not in stored


@pytest.mark.parametrize("given", ["postgresql://u@h", "postgresql://u@h/", "postgres://u@h:x/db"])
def test_a_url_without_a_database_is_an_error(given: str) -> None:
    for open_it in (record_traces, TraceStore):
        with pytest.raises(InvalidOptionError, match="E75"):
            open_it(given)


@pytest.fixture
def reader(postgres_url: str, postgres_server: str, start: Start) -> Any:
    """A URL with a password, of a user that may only read; the tables exist."""
    recorder = start(postgres_url)
    record(recorder, "seen")
    assert recorder.force_flush(10)
    role = f"reader_{uuid.uuid4().hex}"  # roles belong to the server, and tests run side by side
    execute(postgres_url, f"CREATE ROLE {role} LOGIN PASSWORD '{SECRET}'")
    execute(postgres_url, f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}")
    database = postgres_url.partition("?")[0].rpartition("/")[2]
    yield url_of(postgres_server, database, user=role, password=SECRET)
    # Its recorder still tries to write, and would make a temporary table again.
    execute(postgres_url, f"ALTER ROLE {role} NOLOGIN")
    execute(
        postgres_url,
        f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = '{role}'",
    )
    execute(postgres_url, f"DROP OWNED BY {role}")
    execute(postgres_url, f"DROP ROLE {role}")


def test_a_user_that_may_only_read_can_search(reader: str) -> None:
    store = TraceStore(reader)
    assert names(store) == ["seen"]
    assert store.trace("LAST").summary.workflow_name == "seen"
    assert store.prompts() == []
    with pytest.raises(TraceDatabaseError, match="permission denied"):
        store.prune(keep=0)
    assert names(store) == ["seen"]


def test_an_error_names_the_right_that_a_user_lacks(reader: str, postgres_url: str) -> None:
    role = urlsplit(reader).username
    execute(postgres_url, "REVOKE USAGE ON SCHEMA public FROM PUBLIC")
    with pytest.raises(TraceDatabaseError, match=rf'GRANT USAGE ON SCHEMA "public" TO "{role}"'):
        TraceStore(reader).traces()
    execute(postgres_url, f'GRANT USAGE ON SCHEMA public TO "{role}"')
    execute(postgres_url, f'REVOKE SELECT ON traces FROM "{role}"')
    with pytest.raises(TraceDatabaseError, match="permission denied for table traces"):
        TraceStore(reader).traces()
    elsewhere = f"{reader}{'&' if '?' in reader else '?'}options=-csearch_path%3Dmissing"
    with pytest.raises(TraceDatabaseError, match="no schema of its search_path exists"):
        TraceStore(elsewhere).traces()


def test_a_writer_that_is_stopped_in_a_transaction_holds_up_the_others_for_a_while(
    postgres_traces_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    beginning = connection._BEGINNINGS["BEGIN IMMEDIATE"]
    assert "idle_in_transaction_session_timeout = '60s'" in beginning
    monkeypatch.setitem(connection._BEGINNINGS, "BEGIN IMMEDIATE", beginning.replace("60s", "50ms"))
    url = as_url(postgres_traces_url)
    with (
        closing(connection.connect(url, wait=20)) as stopped,
        closing(connection.connect(url, wait=20)) as other,
    ):
        stopped.execute("BEGIN IMMEDIATE")
        other.execute("BEGIN IMMEDIATE")  # it would wait for its lock in vain
        other.execute("ROLLBACK")
        with pytest.raises(sqlite3.OperationalError, match="idle-in-transaction"):
            stopped.execute("SELECT 1")


def test_a_password_is_in_no_message(reader: str, caplog: pytest.LogCaptureFixture, start: Start) -> None:
    wrong = reader.replace("pa-ss", "wrong-pa-ss")
    shown: list[str] = [repr(TraceStore(reader)), repr(start(reader))]
    with pytest.raises(TraceDatabaseError) as caught:
        TraceStore(wrong)
    assert "password authentication failed" in str(caught.value)
    shown += [str(caught.value), repr(caught.value), str(caught.value.__cause__)]
    with caplog.at_level(logging.DEBUG):
        recorder = start(wrong)
        record(recorder, "lost")
        assert not recorder.force_flush(10)
    assert recorder.is_failing
    shown += [record.getMessage() for record in caplog.records]
    assert "E62" in str(shown)
    for text in shown:
        assert SECRET not in text
        assert "w%3Ard" not in text


def test_a_server_that_cannot_be_reached_is_an_error_and_stops_no_run(
    caplog: pytest.LogCaptureFixture, start: Start, tmp_path: Path
) -> None:
    url = f"postgresql://postgres@/traces?host={tmp_path}"
    with pytest.raises(TraceDatabaseError, match="E60"):
        TraceStore(url)
    recorder = start(url)
    record(recorder, "waits")
    assert not recorder.force_flush(5)
    assert recorder.stats().queued == 1
    assert "E62" in caplog.text


def test_tables_of_another_program_are_refused(postgres_url: str, start: Start) -> None:
    execute(postgres_url, "CREATE TABLE spans(id int)")
    with pytest.raises(TraceDatabaseError, match='no table "traces"'):
        TraceStore(postgres_url)
    for adopt in (False, True):
        recorder = start(postgres_url, adopt=adopt)
        record(recorder, "refused")
        assert not recorder.force_flush(10)
    assert execute(postgres_url, "SELECT count(*) FROM spans") == [(0,)]


def test_the_tables_are_added_to_those_of_another_program_if_that_is_wanted(
    postgres_url: str, start: Start
) -> None:
    execute(postgres_url, "CREATE TABLE orders(id int)")
    refused = start(postgres_url)
    record(refused, "refused")
    assert not refused.force_flush(10)
    adopted = start(postgres_url, adopt=True)
    record(adopted, "adopted")
    assert adopted.force_flush(10)
    assert "adopted" in names(TraceStore(postgres_url))


def test_another_schema_holds_other_traces(postgres_url: str, start: Start) -> None:
    execute(postgres_url, "CREATE TABLE spans(id int)")
    execute(postgres_url, "CREATE SCHEMA ours")
    url = f"{postgres_url}{'&' if '?' in postgres_url else '?'}options=-csearch_path%3Dours"
    recorder = start(url)
    record(recorder, "mine")
    assert recorder.force_flush(10)
    assert names(TraceStore(url)) == ["mine"]


def test_what_only_a_file_can_do_is_refused(postgres_url: str, start: Start) -> None:
    recorder = start(postgres_url)
    record(recorder, "a")
    recorder.force_flush(10)
    store = TraceStore(postgres_url)
    with pytest.raises(NotInPostgresError, match="E141"):
        store.prune(max_size=1_000)
    with pytest.raises(NotInPostgresError, match="E141"):
        store.prune(keep=1, vacuum=True)
    assert names(store) == ["a"]


def test_without_the_extension_there_is_one_warning_and_searches_find_the_same(
    postgres_url: str, start: Start, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kantan_agents.traces.postgres import schema

    (available,) = execute(
        postgres_url, "SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_trgm'"
    )
    monkeypatch.setattr(schema._Warned, "has_no_trigrams", False)
    recorder = start(postgres_url)
    record(recorder, "a", "a needle in hay")
    assert recorder.force_flush(10)
    store = TraceStore(postgres_url)
    assert len(store.traces(keywords=["needle"])) == 1
    assert caplog.text.count("trigram index") == 1 - available[0]
    if not available[0]:
        with pytest.raises(NotInPostgresError, match="pg_trgm"):
            store.build_index()
    store.remove_index()


def test_a_deleted_trace_takes_its_records_along(postgres_url: str) -> None:
    recorder = record_traces(postgres_url, flush_on_sigterm=False)
    for number in range(3):
        model = ScriptedModel([[assistant_message("done")]])
        Agent("a", f"Instructions {number}", model=model).run("go")
    store = TraceStore(postgres_url)
    result = store.prune(keep=1)
    assert (result.traces, result.spans > 0) == (2, True)
    assert execute(postgres_url, "SELECT count(*) FROM kantan_agents_runs") == [(1,)]
    assert execute(postgres_url, "SELECT count(*) FROM kantan_agents_contents WHERE uses <= 0") == [(0,)]
    assert store.trace("LAST").is_complete
    recorder.shutdown()


def test_a_week_of_which_all_traces_are_old_is_dropped(postgres_url: str, start: Start) -> None:
    from datetime import datetime, timedelta, timezone

    from agents import set_trace_processors
    from agents.tracing import custom_span, trace

    recorder = start(postgres_url)
    set_trace_processors([recorder])
    for name, days in (("old", 60), ("older", 61), ("new", 0)):
        with trace(name), custom_span("s") as span:
            span._started_at = (datetime.now(timezone.utc) - timedelta(days=days)).isoformat()
        recorder.force_flush(10)
    partitions = "SELECT count(*) FROM pg_tables WHERE tablename LIKE 'kantan_agents_spans_w%'"
    (before,) = execute(postgres_url, partitions)
    store = TraceStore(postgres_url)
    planned = store.prune(older_than=timedelta(days=30), dry_run=True)
    assert names(store) == ["old", "older", "new"]
    result = store.prune(older_than=timedelta(days=30))
    assert (planned.traces, planned.spans) == (result.traces, result.spans) == (2, 2)
    assert names(store) == ["new"]
    assert execute(postgres_url, partitions)[0][0] < before[0]


def test_an_old_server_is_refused(monkeypatch: pytest.MonkeyPatch, postgres_url: str) -> None:
    from kantan_agents.traces.postgres import connection

    monkeypatch.setattr(connection, "OLDEST", 990_000)
    with pytest.raises(TraceDatabaseError, match="is the oldest that works"):
        TraceStore(postgres_url)


def test_tables_of_a_later_version_are_refused(postgres_url: str, start: Start) -> None:
    recorder = start(postgres_url)
    assert recorder.force_flush(10)
    execute(postgres_url, "UPDATE kantan_agents_schema SET version = 99")
    with pytest.raises(TraceDatabaseError, match="version 99"):
        TraceStore(postgres_url)


def test_a_driver_that_is_imported_a_second_time_works(
    monkeypatch: pytest.MonkeyPatch, postgres_url: str, start: Start
) -> None:
    import sys

    assert start(postgres_url).force_flush(10)
    monkeypatch.delitem(sys.modules, "psycopg")
    with TraceStore(postgres_url) as store:
        assert store.traces() == []


def test_without_a_driver_the_command_to_install_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from kantan_agents.errors import PostgresMissingError

    monkeypatch.setitem(sys.modules, "psycopg", None)
    for open_it in (record_traces, TraceStore):
        with pytest.raises(PostgresMissingError, match=r'pip install "\.\[postgres\]"'):
            open_it("postgresql://u@h/db")
