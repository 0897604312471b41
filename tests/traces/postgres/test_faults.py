"""What is lost, and what is not, when servers, connections and processes end."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kantan_agents import TraceStore
from kantan_agents.errors import TraceDatabaseError
from kantan_agents.traces.database_url import as_url
from kantan_agents.traces.postgres import backend, patient_connection
from kantan_agents.traces.recorder.postgres_recorder import ServerDatabase
from kantan_agents.traces.store.connection import changing, reading
from tests.durable.stalling_proxy import stalling_proxy
from tests.postgres_server import execute, fresh_database, own_server
from tests.programs import Preloaded, Program
from tests.traces.postgres.conftest import Start
from tests.traces.postgres.spans import names, record

ROOT = Path(__file__).parents[3]
Writer = Callable[..., Program]


def until(condition: Callable[[], bool], seconds: float = 120) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        threading.Event().wait(0.02)
    return True


def test_nothing_is_lost_while_the_server_is_away(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    with own_server() as server, fresh_database(server.url) as url:
        recorder = start(url)
        record(recorder, "before")
        assert recorder.force_flush(10)
        server.stop("immediate")
        for number in range(20):
            record(recorder, f"meanwhile {number}")
        assert not recorder.force_flush(10)
        assert recorder.stats().queued == 20
        assert "E62" in caplog.text
        server.start()
        assert until(lambda: recorder.force_flush(1))
        assert names(TraceStore(url)) == ["before", *(f"meanwhile {number}" for number in range(20))]
        assert recorder.stats().dropped == recorder.stats().failed == 0
        recorder.shutdown()


def test_nothing_is_lost_when_a_connection_stalls_in_the_middle_of_a_statement(
    postgres_url: str, start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(patient_connection, "ANSWER_SECONDS", 0.5)
    with stalling_proxy(postgres_url) as proxy:
        recorder = start(proxy.url)
        record(recorder, "before")
        assert recorder.force_flush(10)
        proxy.lose()
        record(recorder, "meanwhile")
        assert until(lambda: recorder.force_flush(1))
        assert "the server has not answered" in caplog.text
        assert recorder.stats().written == 2
        assert names(TraceStore(postgres_url)) == ["before", "meanwhile"]
        recorder.shutdown()


@pytest.mark.parametrize(
    ("limit", "opened"),
    [("_READ_SECONDS", reading), ("ANSWER_SECONDS", partial(changing, wait=0.1))],
    ids=["a search", "a short change"],
)
def test_what_waits_ends_when_the_server_falls_silent(
    postgres_url: str, start: Start, monkeypatch: pytest.MonkeyPatch, limit: str, opened: Any
) -> None:
    monkeypatch.setattr(backend, limit, 0.5)
    recorder = start(postgres_url)
    record(recorder, "before")
    recorder.shutdown()
    with (
        stalling_proxy(postgres_url) as proxy,
        pytest.raises(TraceDatabaseError, match=r"E60.*not answered"),
        opened(as_url(proxy.url)) as connection,
    ):
        assert connection.execute("SELECT COUNT(*) FROM traces").fetchone()[0] == 1
        proxy.stall()
        connection.execute("SELECT COUNT(*) FROM traces")


def test_beyond_the_queue_the_oldest_are_dropped_counted_and_logged(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    with own_server() as server, fresh_database(server.url) as url:
        recorder = start(url, max_queue=10)
        assert recorder.force_flush(10)
        server.stop("immediate")
        for number in range(30):
            record(recorder, f"run {number}")
        assert "E63" in caplog.text
        server.start()
        assert until(lambda: recorder.force_flush(1))
        stats = recorder.stats()
        assert stats.dropped > 0
        assert stats.written + stats.dropped == 30
        assert TraceStore(url).traces(limit=1)[0].spans == 1
        recorder.shutdown()


def test_an_empty_replica_gets_the_tables_and_all_later_traces(postgres_server: str, start: Start) -> None:
    with fresh_database(postgres_server) as url:
        recorder = start(url)
        record(recorder, "lost with the first")
        assert recorder.force_flush(10)
        execute(url, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        execute(
            url,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid != pg_backend_pid()",
        )
        record(recorder, "kept")
        assert until(lambda: recorder.force_flush(1))
        assert names(TraceStore(url)) == ["kept"]
        recorder.shutdown()


def test_a_batch_whose_commit_was_not_answered_is_counted_once(postgres_url: str) -> None:
    from kantan_agents.traces.recorder.rows import SpanRow
    from kantan_agents.traces.schema import COLUMNS

    database = ServerDatabase(as_url(postgres_url))
    values = dict.fromkeys(COLUMNS["spans"][:-1])
    values |= {"id": "span_1", "trace_id": "trace_1", "raw_json": "{}", "error_json": "null"}
    row = SpanRow((*values.values(),), {"input_tokens": 5})
    trace = ("trace_1", "w", None, "{}")
    database.open()
    connection = database._connection
    assert connection is not None
    execute_it = connection.execute

    def cut(sql: str, *values: Any) -> Any:
        result = execute_it(sql, *values)
        if sql == "COMMIT":
            from kantan_agents.traces.postgres.server_error import ServerError

            raise ServerError("server closed the connection unexpectedly")
        return result

    connection.execute = cut
    with pytest.raises(Exception, match="closed the connection"):
        database.write([trace], [row])
    database.write([trace], [row])
    database.write([], [])
    database.close()
    metadata = execute(postgres_url, "SELECT metadata_json FROM traces")
    assert metadata == [('{"usage_total": {"input_tokens": 5}}',)]
    assert execute(postgres_url, "SELECT count(*) FROM spans") == [(1,)]


WRITER = """
import os, signal, sys, time
from kantan_agents import record_traces
from tests.traces.postgres.spans import record
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])  # in all threads that follow
recorder = record_traces(sys.argv[1], flush_interval=float(sys.argv[2]))
record(recorder, "written")
assert recorder.force_flush(10)
record(recorder, "waiting")
print("ready", flush=True)
while sys.argv[3] == "wait":  # signal.pause() would overlook a signal that comes just before it
    time.sleep(0.01)
if sys.argv[3] == "usr1":
    signal.sigwait([signal.SIGUSR1])
"""


@pytest.fixture
def writer(preloaded: Preloaded) -> Iterator[Writer]:
    """``writer(url, interval, ending)``: a process that has written one span and has another that waits."""
    started: list[Program] = []

    def start(url: str, interval: float, ending: str, *, before: str = "") -> Program:
        command = ["-c", before + WRITER, url, str(interval), ending]
        process = preloaded.popen(command, cwd=ROOT, encoding="utf-8")
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in started:
        process.kill()


def test_a_killed_writer_loses_only_what_was_not_written(postgres_url: str, writer: Writer) -> None:
    process = writer(postgres_url, 60, "wait")
    process.kill()
    process.communicate(60)
    assert names(TraceStore(postgres_url)) == ["written"]


@pytest.mark.parametrize("ending", ["exit", "sigterm"])
def test_a_writer_that_ends_writes_what_waits(postgres_url: str, writer: Writer, ending: str) -> None:
    process = writer(postgres_url, 60, "wait" if ending == "sigterm" else "")
    if ending == "sigterm":
        process.send_signal(signal.SIGTERM)
    process.communicate(60)
    assert names(TraceStore(postgres_url)) == ["written", "waiting"]


# The bound is short, as the server does not answer before the process has ended.
IMPATIENT = """
import logging
from kantan_agents.traces.recorder import bound
logging.basicConfig()
bound.END_SECONDS = 0.5
"""
OF_WRITER = "SELECT pid FROM pg_stat_activity WHERE application_name = 'kantan-agents'"


@pytest.mark.parametrize(("ending", "code"), [("exit", 0), ("sigterm", -signal.SIGTERM)])
def test_a_process_that_ends_before_its_server_answers_says_how_many_spans_are_missing(
    writer: Writer, ending: str, code: int
) -> None:
    kind, number = ("wait", signal.SIGTERM) if ending == "sigterm" else ("usr1", signal.SIGUSR1)
    with own_server() as server, fresh_database(server.url) as url:
        process = writer(url, 60, kind, before=IMPATIENT)
        [(backend,)] = execute(url, OF_WRITER)
        os.kill(backend, signal.SIGSTOP)
        try:
            process.send_signal(number)
            _, errors = process.communicate(60)
        finally:
            os.kill(backend, signal.SIGCONT)
        assert process.returncode == code, errors
        said = [line for line in errors.splitlines() if "[E62]" in line]
        assert len(said) == 1, errors
        assert "the process ends before they are written (1 spans waiting)" in said[0]


def test_a_forked_child_records_on_its_own_connection(postgres_url: str, start: Start) -> None:
    recorder = start(postgres_url)
    record(recorder, "parent before")
    assert recorder.force_flush(10)
    pid = os.fork()
    if not pid:
        record(recorder, "child")
        os._exit(0 if recorder.force_flush(10) else 1)
    record(recorder, "parent after")
    assert recorder.force_flush(10)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert sorted(names(TraceStore(postgres_url))) == ["child", "parent after", "parent before"]


SERVICE = """
import sys
from kantan_agents.traces.recorder.postgres_recorder import PostgresRecorder
from tests.traces.postgres.spans import record
recorder = PostgresRecorder(sys.argv[1], flush_on_sigterm=False)
for place in range(5):
    record(recorder, f"{sys.argv[2]}-{place}")
assert recorder.force_flush(30)
recorder.shutdown()
"""


def test_services_that_start_at_once_make_the_tables_once(postgres_url: str, preloaded: Preloaded) -> None:
    started = [
        preloaded.popen(["-c", SERVICE, postgres_url, str(number)], cwd=ROOT, encoding="utf-8")
        for number in range(4)
    ]
    ended = [(process.communicate(120)[1], process.returncode) for process in started]
    assert ended == [("", 0)] * 4
    found = names(TraceStore(postgres_url))
    assert sorted(found) == sorted(f"{number}-{place}" for number in range(4) for place in range(5))
    assert execute(postgres_url, "SELECT version FROM kantan_agents_schema") == [(1,)]


def test_what_a_reader_follows_is_complete_with_two_writers(postgres_url: str, start: Start) -> None:
    one, two = start(postgres_url), start(postgres_url)
    assert one.force_flush(10)
    store = TraceStore(postgres_url)
    follower = store._follower(None)
    recorded = [record((one, two)[number % 2], f"run {number}") for number in range(20)]
    seen: list[str] = []

    def all_seen() -> bool:
        seen.extend(trace.trace_id for trace in follower.poll())
        return len(seen) == len(recorded)

    assert until(all_seen)
    follower.close()
    assert sorted(seen) == sorted(recorded)
