"""How spans reach the collector: flushed at every end of a process, and without delay when it is away."""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import custom_span, flush_traces, set_trace_processors
from agents import trace as sdk_trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from kantan_agents import OtelExporter, record_traces
from kantan_agents.errors import InvalidOptionError, TelemetrySettingError
from kantan_agents.traces.telemetry import OtelStats, sending
from kantan_agents.traces.telemetry import conventions as names
from kantan_agents.traces.telemetry.connection import Connection
from kantan_agents.traces.telemetry.own_pipeline import _Flusher
from tests.programs import Preloaded
from tests.traces.telemetry.ending import FLUSH, end_exporters
from tests.traces.telemetry.receiver import Receiver

Export = Callable[..., OtelExporter]
SECONDS = 120.0

PRELUDE = """
import os, signal, sys, time
from agents import custom_span, set_trace_processors, trace
from kantan_agents import OtelExporter, record_traces

def span(name):
    with trace(name):
        with custom_span("in " + name):
            pass
"""


@pytest.fixture
def program(preloaded: Preloaded, receiver: Receiver) -> Callable[..., Any]:
    """``program(code, ...)``: start a script that sends to the receiver."""

    def start(code: str, **env: str) -> Any:
        settings = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, **env}
        command = ["-c", PRELUDE + code]
        return preloaded.popen(command, env=settings, encoding="utf-8")

    return start


def ended(process: Any) -> tuple[int, str, str]:
    """Return the exit status of a process and what it has written."""
    out, err = process.communicate(SECONDS)
    return process.returncode, out, err


def spans(*workflows: str) -> None:
    for name in workflows:
        with sdk_trace(name), custom_span(f"in {name}"):
            pass


def workflows(receiver: Receiver) -> list[str]:
    return sorted(span.name.split()[1] for span in receiver.spans if span.name.startswith("invoke_workflow"))


# Ends of a process.


def test_what_waits_is_sent_at_exit(program: Any, receiver: Receiver) -> None:
    done = program("set_trace_processors([OtelExporter()]); span('a'); span('b')")
    assert ended(done)[::2] == (0, "")
    assert workflows(receiver) == ["a", "b"]
    assert names.AGENT_DURATION in receiver.metrics


@pytest.mark.parametrize("handled", [False, True])
def test_what_waits_is_sent_on_sigterm(program: Any, receiver: Receiver, handled: bool) -> None:
    handler = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))\n" if handled else ""
    process = program(
        f"{handler}set_trace_processors([OtelExporter()]); span('a'); print('ready', flush=True)\n"
        "while True: time.sleep(0.1)"
    )
    assert process.stdout.readline() == "ready\n"
    os.kill(process.pid, signal.SIGTERM)
    assert ended(process)[0] == (3 if handled else -signal.SIGTERM)
    assert workflows(receiver) == ["a"]


def test_kill_9_loses_only_what_was_not_sent(program: Any, receiver: Receiver) -> None:
    process = program(
        "exporter = OtelExporter(); set_trace_processors([exporter]); span('a')\n"
        "assert exporter.force_flush(60); span('b'); print('ready', flush=True)\n"
        "while True: time.sleep(0.1)"
    )
    assert process.stdout.readline() == "ready\n"
    os.kill(process.pid, signal.SIGKILL)
    ended(process)
    assert workflows(receiver) == ["a"]


def test_forked_children_send_their_own_spans_only(program: Any, receiver: Receiver) -> None:
    done = program(
        """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12, about forks of a process with threads
exporter = OtelExporter()
set_trace_processors([exporter])
span("sent")
assert exporter.force_flush(60)
span("waiting")
children = []
for number in range(3):
    pid = os.fork()
    if pid == 0:
        span(f"child{number}")
        os._exit(0 if exporter.force_flush(60) else 1)
    children.append(pid)
for pid in children:
    assert os.waitpid(pid, 0)[1] == 0
span("parent")
assert exporter.force_flush(60)
"""
    )
    assert ended(done)[::2] == (0, "")
    assert workflows(receiver) == ["child0", "child1", "child2", "parent", "sent", "waiting"]
    assert len({span.span_id for span in receiver.spans}) == len(receiver.spans)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_multiprocessing_send_at_their_end(
    tmp_path: Path, receiver: Receiver, preloaded: Preloaded, method: str
) -> None:
    count = 2 if method == "fork" else 1  # a spawned worker shares nothing with another, and imports all anew
    script = tmp_path / "workers.py"
    script.write_text(
        PRELUDE
        + f"""
import multiprocessing, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12, about forks of a process with threads

def work(number):
    if {method == "spawn"}:
        set_trace_processors([OtelExporter()])
    span(f"worker{{number}}")

if __name__ == "__main__":
    set_trace_processors([OtelExporter()])
    context = multiprocessing.get_context("{method}")
    workers = [context.Process(target=work, args=(number,)) for number in range({count})]
    for worker in workers: worker.start()
    for worker in workers: worker.join()
    assert [worker.exitcode for worker in workers] == [0] * {count}
"""
    )
    done = preloaded.run([script], timeout=SECONDS)
    assert (done.returncode, done.stderr) == (0, "")
    assert workflows(receiver) == [f"worker{number}" for number in range(count)]


def test_several_processes_send_to_one_collector(program: Any, receiver: Receiver) -> None:
    code = "set_trace_processors([OtelExporter()])\nfor n in range(20): span('p%d')"
    running = [program(code % number) for number in range(3)]
    assert [ended(process) for process in running] == [(0, "", "")] * 3
    assert workflows(receiver) == ["p0"] * 20 + ["p1"] * 20 + ["p2"] * 20


# A collector that is away.


@pytest.fixture
def nobody() -> Iterator[str]:
    """A URL where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture
def silent() -> Iterator[str]:
    """A collector that takes connections and answers nothing."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_a_process_ends_when_nobody_listens(program: Any, nobody: str) -> None:
    done = program(
        "import logging; logging.basicConfig(level=logging.WARNING)\n"
        "exporter = OtelExporter(); set_trace_processors([exporter]); span('a')\n"
        "exporter.force_flush(60); print(exporter.stats())",
        OTEL_EXPORTER_OTLP_ENDPOINT=nobody,
        OTEL_EXPORTER_OTLP_TIMEOUT="1",
    )
    status, out, err = ended(done)
    assert status == 0
    assert "queued=2" in out
    assert "E132" in err


def test_a_process_ends_when_the_collector_is_silent(program: Any, silent: str) -> None:
    done = program(
        "set_trace_processors([OtelExporter()]); span('a')",
        OTEL_EXPORTER_OTLP_ENDPOINT=silent,
        OTEL_EXPORTER_OTLP_TIMEOUT="3600",
    )
    assert ended(done)[0] == 0


def test_a_flush_waits_no_longer_than_it_may(
    export: Export, monkeypatch: pytest.MonkeyPatch, silent: str
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", silent)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    exporter = export()
    spans("a")
    assert exporter.force_flush(0.01) is False


def test_what_a_collector_refuses_is_counted_and_logged_once(
    receiver: Receiver, exporter: OtelExporter, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.status = 400
    for _ in range(3):
        spans("a")
        assert exporter.force_flush(FLUSH) is False
    assert (exporter.stats().failed, exporter.stats().sent) == (6, 0)
    assert [record.code for record in caplog.records if hasattr(record, "code")] == ["E132"]
    receiver.status = 200
    spans("b")
    assert exporter.force_flush(FLUSH)
    assert exporter.stats().sent == 2
    assert workflows(receiver) == ["b"]


def lost(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged of lost spans."""
    return [record.reason for record in caplog.records if getattr(record, "code", None) == "E132"]


@pytest.fixture
def away(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> Receiver:
    """A collector that asks for another try."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.2")  # no other try by the exporter of OpenTelemetry
    receiver.status = 503
    return receiver


def test_nothing_is_lost_while_the_collector_is_away_and_the_queue_is_not_full(
    away: Receiver, export: Export, caplog: pytest.LogCaptureFixture
) -> None:
    exporter = export()
    for _ in range(3):
        spans("a")
        exporter._later.do_now()
        assert exporter.force_flush(FLUSH) is False
    assert exporter.stats() == OtelStats(queued=6)
    away.status = 200
    spans("b")
    assert exporter.force_flush(FLUSH)
    assert exporter.stats() == OtelStats(sent=8)
    assert workflows(away) == ["a", "a", "a", "b"]
    assert lost(caplog) == ["the collector answers 503; they wait for it"]


def test_what_is_lost_while_the_collector_is_away_is_counted_and_said(
    away: Receiver, export: Export, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "10")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "10")
    exporter = export()
    spans("first")
    assert exporter.force_flush(FLUSH) is False
    spans(*["more"] * 25)
    exporter._later.do_now()
    assert exporter.stats() == OtelStats(dropped=40, queued=12)
    away.status = 200
    assert exporter.force_flush(FLUSH)
    assert exporter.stats() == OtelStats(sent=12, dropped=40)
    assert lost(caplog) == [
        "the collector answers 503; they wait for it",
        "more than 10 wait (OTEL_BSP_MAX_QUEUE_SIZE)",
        "40 were dropped while the collector was away",
    ]


def test_spans_that_the_collector_gets_without_an_answer_hold_up_no_others(
    receiver: Receiver, export: Export, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.2")  # no other try by the exporter of OpenTelemetry
    monkeypatch.setattr(sending, "PAUSE", 0.001)
    monkeypatch.setattr(receiver._server, "handle_error", lambda *_: None)
    take = receiver.take

    def hang_up(_path: str, _body: bytes) -> None:
        raise ConnectionAbortedError

    monkeypatch.setattr(receiver, "take", hang_up)
    exporter = export()
    spans("a")
    exporter._later.do_now()
    exporter.tracer_provider.force_flush()  # without a limit
    assert exporter.stats() == OtelStats(failed=2)
    assert lost(caplog) == [
        "the collector does not answer; they wait for it",
        "the collector does not answer",
    ]
    monkeypatch.setattr(receiver, "take", take)
    spans("b")
    assert exporter.force_flush(FLUSH)
    assert exporter.stats() == OtelStats(failed=2, sent=2)


def test_a_try_without_time_left_does_not_end_the_wait_for_a_collector_that_is_away(away: Receiver) -> None:
    with Connection() as connection:
        connection.post(away.url, data=b"", timeout=SECONDS)
        with pytest.raises(ValueError, match="timeout"):  # OpenTelemetry gives what is left of its own
            connection.post(away.url, data=b"", timeout=0.0)
        assert connection.is_away
        connection.forget()
        assert not connection.is_away


def test_a_collector_without_tls_is_said_to_have_none(receiver: Receiver) -> None:
    with Connection() as connection:
        with pytest.raises(OSError, match="SSL"):
            connection.post(receiver.url.replace("http:", "https:"), data=b"", timeout=SECONDS)
        assert connection.is_away
        assert connection.problem == "the collector has no TLS that is accepted"


def test_the_last_flush_is_made_although_an_earlier_try_says_that_the_collector_is_away() -> None:
    has_ended = threading.Event()
    flusher = _Flusher(lambda: None)
    with flusher._changed:  # both before its thread goes on
        flusher.end_with(has_ended.set)
        flusher.begin_try()()
    assert has_ended.wait(SECONDS)


def test_a_try_that_was_under_way_ends_no_later_flush() -> None:
    may_end = threading.Event()
    flusher = _Flusher(may_end.wait)
    was_away = flusher.begin_try()
    wait = flusher.begin()
    was_away()
    assert not wait(0.0)
    flusher.begin_try()()
    assert wait(0.0)
    flusher.end_with(may_end.clear)
    may_end.set()
    flusher._thread.join(SECONDS)
    assert not may_end.is_set()


@pytest.mark.parametrize("rejected", [1, 2, 7, -1])
def test_spans_that_a_collector_refuses_of_those_it_takes_are_counted_and_said_once(
    receiver: Receiver, exporter: OtelExporter, caplog: pytest.LogCaptureFixture, rejected: int
) -> None:
    refused = min(max(rejected, 0), 2)
    partial = {"rejected_spans": rejected, "error_message": "too\nlong"}
    receiver.answer = ExportTraceServiceResponse(partial_success=partial).SerializeToString()
    for _ in range(3):
        spans("a")
        assert exporter.force_flush(FLUSH)
    assert exporter.stats() == OtelStats(sent=3 * (2 - refused), failed=3 * refused)
    assert lost(caplog) == (["the collector refuses a part: too long"] if refused else [])


def test_an_answer_that_is_not_one_of_otlp_refuses_nothing(
    receiver: Receiver, exporter: OtelExporter
) -> None:
    receiver.answer = b"\nno"
    spans("a")
    assert exporter.force_flush(FLUSH)
    assert exporter.stats() == OtelStats(sent=2)


def test_what_waits_at_the_end_is_said(program: Any, nobody: str) -> None:
    done = program(
        "import logging; logging.basicConfig(level=logging.WARNING)\n"
        "exporter = OtelExporter(); set_trace_processors([exporter]); span('a')\n"
        "assert not exporter.force_flush(60)",
        OTEL_EXPORTER_OTLP_ENDPOINT=nobody,
        OTEL_EXPORTER_OTLP_TIMEOUT="0.2",
    )
    status, _, err = ended(done)
    assert status == 0
    assert "2 lost so far: 2 still wait at the end of the process" in err


def test_an_exporter_that_is_gone_gives_up_a_collector_that_is_away(
    away: Receiver, export: Export, caplog: pytest.LogCaptureFixture
) -> None:
    before = set(threading.enumerate())
    exporter = export()
    spans("a")
    assert exporter.force_flush(FLUSH) is False
    end_exporters(before)
    assert exporter.stats() == OtelStats(failed=2)
    assert lost(caplog)[-1] == "the collector answers 503"


def test_what_does_not_fit_into_the_queue_is_dropped_counted_and_logged(
    export: Export, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "10")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "10")
    may_answer, is_asked = threading.Event(), threading.Event()
    take = receiver.take

    def held(path: str, body: bytes) -> None:
        is_asked.set()
        assert may_answer.wait(SECONDS)
        take(path, body)

    monkeypatch.setattr(receiver, "take", held)
    exporter = export()
    spans("first")
    exporter.start_flush()
    assert is_asked.wait(SECONDS)
    spans(*["more"] * 25)
    exporter._later.do_now()
    assert exporter.stats().dropped == 40
    may_answer.set()
    assert exporter.force_flush(FLUSH)
    stats = exporter.stats()
    assert (stats.sent, stats.dropped, stats.failed, stats.queued) == (12, 40, 0, 0)
    assert "more than 10 wait" in caplog.text
    assert sum(getattr(record, "code", None) == "E132" for record in caplog.records) == 1


# Providers and settings.


def test_the_providers_that_the_application_has_set_are_used(program: Any, receiver: Receiver) -> None:
    done = program(
        """
from opentelemetry import metrics, trace as otel
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
kept, reader = InMemorySpanExporter(), InMemoryMetricReader()
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(kept))
otel.set_tracer_provider(provider)
metrics.set_meter_provider(MeterProvider([reader]))
exporter = OtelExporter()
set_trace_processors([exporter])
span("a")
assert exporter.force_flush()
assert exporter.tracer_provider is provider
print(sorted(one.name for one in kept.get_finished_spans()))
(scope,) = reader.get_metrics_data().resource_metrics[0].scope_metrics
print([metric.name for metric in scope.metrics])
"""
    )
    status, out, err = ended(done)
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "['in a', 'invoke_workflow a']",
        f"['{names.AGENT_DURATION}']",
    ]
    assert receiver.requests == []


def test_spans_reach_the_applications_provider_before_it_ends(program: Any, receiver: Receiver) -> None:
    done = program(
        """
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
set_trace_processors([OtelExporter(tracer_provider=provider)])
span("a")
"""
    )
    assert ended(done)[::2] == (0, "")
    assert workflows(receiver) == ["a"]


def test_the_resource_is_that_of_the_environment(
    export: Export, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "orders")
    exporter = export()
    spans("a")
    assert exporter.force_flush(FLUSH)
    assert receiver.spans[0].resource["service.name"] == "orders"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OTEL_TRACES_EXPORTER", "zipkin"),
        ("OTEL_METRICS_EXPORTER", "prometheus"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "many"),
    ],
)
def test_a_setting_that_cannot_be_followed_is_an_error(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(TelemetrySettingError, match=f"E131.*{variable}={value}"):
        OtelExporter()


def test_none_sends_nothing(export: Export, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    exporter = export()
    spans("a")
    assert exporter.force_flush(FLUSH)
    assert receiver.requests == []


def test_a_disabled_sdk_sends_nothing(
    export: Export, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    exporter = export()
    spans("a")
    assert exporter.force_flush(FLUSH)
    assert receiver.spans == []


@pytest.mark.parametrize(
    "options",
    [
        {"content": "yes"},
        {"redact": 7},
        {"tracer_provider": 7},
        {"meter_provider": "x"},
        {"flush_on_sigterm": 1},
        {"user_key": ""},
        {"user_key": 7},
    ],
    ids=str,
)
def test_an_invalid_option_is_an_error(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOptionError, match=f"E75.*{next(iter(options))}"):
        OtelExporter(**options)


def test_without_opentelemetry_the_error_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['opentelemetry.sdk.trace'] = None\n"
        "import kantan_agents\n"
        "print(kantan_agents.trace_headers())\n"
        "try: kantan_agents.OtelExporter()\n"
        "except kantan_agents.KantanAgentsError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    headers, message = done.stdout.splitlines()
    assert headers == "{}"
    assert message.startswith("[kantan-agents][E130] An extra is missing for OpenTelemetry")
    assert message.endswith('python -m pip install ".[otel]"')


def test_whoever_only_runs_agents_imports_nothing_of_it() -> None:
    code = (
        "import sys\n"
        "from kantan_agents import Agent, record_traces\n"
        "from kantan_agents.testing import OfflineServer\n"
        "with OfflineServer(['Hi.']) as server: Agent('a', 'b', model=server.bundle()).run('x')\n"
        "print([name for name in sys.modules "
        "if name.startswith(('kantan_agents.traces.telemetry', 'opentelemetry.sdk'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# Beside the recorder.


def test_record_traces_sends_too(receiver: Receiver, tmp_path: Path) -> None:
    record_traces(tmp_path / "t.sqlite3", otel=True, flush_on_sigterm=False)
    spans("a")
    flush_traces()
    assert workflows(receiver) == ["a"]


def test_record_traces_redacts_what_it_sends(receiver: Receiver, tmp_path: Path) -> None:
    from kantan_agents import redact_texts

    redact = redact_texts(lambda text: text.replace("Ann", "X"))
    record_traces(tmp_path / "t.sqlite3", otel=True, redact=redact)
    with sdk_trace("w", metadata={"user": "Ann"}):
        pass
    flush_traces()
    assert receiver.spans[0].attributes["kantan_agents.metadata.user"] == "X"


@pytest.mark.parametrize("otel", ["yes", 1, None])
def test_otel_is_a_bool_or_an_exporter(tmp_path: Path, otel: Any) -> None:
    with pytest.raises(InvalidOptionError, match=r"E75.*otel"):
        record_traces(tmp_path / "t.sqlite3", otel=otel)


def test_an_exporter_that_is_replaced_sends_what_it_has_and_ends_its_threads(
    receiver: Receiver, tmp_path: Path
) -> None:
    before = set(threading.enumerate())
    record_traces(tmp_path / "t.sqlite3", otel=True)
    spans("a")
    ours = [thread for thread in threading.enumerate() if thread not in before and "tel" in thread.name]
    assert len(ours) >= 3
    set_trace_processors([])
    gc.collect()
    for thread in ours:
        thread.join(SECONDS)
    assert not any(thread.is_alive() for thread in ours)
    assert workflows(receiver) == ["a"]


def test_a_mistake_of_ours_is_logged_once_and_no_run_fails(
    exporter: OtelExporter, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "kantan_agents.telemetry")

    class Hostile(str):
        __slots__ = ()

        def __str__(self) -> str:
            raise OSError("no")

    for _ in range(3):
        with sdk_trace("w", metadata={"agent_run_id": "1", "agent_name": Hostile()}):
            pass
    assert exporter.force_flush(FLUSH)
    assert [record.code for record in caplog.records if hasattr(record, "code")] == ["E133"]


async def test_flushing_does_not_block_the_event_loop(exporter: OtelExporter, receiver: Receiver) -> None:
    spans("a")
    assert await exporter.force_flush_async(FLUSH)
    assert workflows(receiver) == ["a"]


def test_repr_says_where_it_sends(exporter: OtelExporter) -> None:
    assert repr(exporter) == "OtelExporter(its own pipeline, content=False)"
