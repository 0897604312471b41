"""Phoenix and MLflow, started as their documentation says: what they show of runs, read over their APIs."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import attrs
import logfire
import pytest
from agents import RunConfig, SQLiteSession, function_tool, set_trace_processors
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from kantan_agents import Agent, OtelExporter, Prompt
from kantan_agents.testing import OfflineServer
from kantan_agents.traces.telemetry import OtelStats
from tests.traces.telemetry.ending import FLUSH

# nox installs them in an environment of their own: their dependencies exclude those of this library.
PROGRAMS = Path(os.environ["TRACE_BACKENDS"])
SECONDS = 120.0
QUIET = {
    "PHOENIX_TELEMETRY_ENABLED": "false",
    "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
    "PHOENIX_SQL_DATABASE_URL": "sqlite:///:memory:",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    "NO_PROXY": "127.0.0.1",
}


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@attrs.frozen
class Backend:
    """A server of one of them."""

    url: str
    headers: str = ""

    def get(self, path: str, body: Any = None) -> Any:
        """Return what its API answers."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return json.load(answer)

    def shown(self, ask: Callable[[], list[Any]], count: int) -> list[Any]:
        """Return what ``ask()`` finds once there are so many: a server answers before it stores."""
        end = time.monotonic() + SECONDS
        while True:
            with suppress(HTTPError):  # its project may not exist yet
                if len(found := ask()) >= count:
                    return found
            assert time.monotonic() < end
            time.sleep(0.1)


@contextmanager
def serving(log: Path, port: int, health: str, *command: str, **env: str) -> Iterator[str]:
    """Start a program, wait until it answers, and end it."""
    settings = {**os.environ, **QUIET, **env}
    with (
        log.open("wb") as out,
        subprocess.Popen(
            [PROGRAMS / command[0], *command[1:]], stdout=out, stderr=out, env=settings, cwd=log.parent
        ) as process,
    ):
        url, end = f"http://127.0.0.1:{port}", time.monotonic() + SECONDS
        try:
            while True:
                try:
                    with urllib.request.urlopen(url + health, timeout=SECONDS):
                        break
                except OSError:
                    if process.poll() is not None or time.monotonic() > end:
                        pytest.fail(log.read_text(errors="replace"))
                    time.sleep(0.2)
            yield url
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def phoenix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    folder, port = tmp_path_factory.mktemp("phoenix"), free_port()
    env = {
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
    }
    with serving(folder / "log", port, "/healthz", "phoenix", "serve", **env) as url:
        yield Backend(url)


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    folder, port = tmp_path_factory.mktemp("mlflow"), free_port()
    command = ("mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1")
    store = ("--backend-store-uri", f"sqlite:///{folder / 'mlflow.db'}")
    with serving(folder / "log", port, "/health", *command, *store) as url:
        yield Backend(url, "x-mlflow-experiment-id=0")


@function_tool
def find_order(number: int) -> str:
    """Find an order."""
    if number > 7:
        raise KeyError(number)
    return f"Order {number}: on its way"


def converse(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a conversation of two runs, of which the second has a tool that fails, and send them."""
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", backend.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", backend.headers)
    monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "openinference.project.name=shop")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")  # they take traces only
    # Another test of this process may have set up OpenTelemetry, which OtelExporter would use.
    monkeypatch.setattr("opentelemetry.trace._TRACER_PROVIDER", None)
    exporter = OtelExporter(content=True, user_key="customer", flush_on_sigterm=False)
    set_trace_processors([exporter])
    calls = [{"tool": "find_order", "arguments": {"number": number}} for number in (7, 8)]
    with OfflineServer([calls[0], "On its way.", calls[1], "I cannot find it."]) as server:
        prompt = Prompt("support", "v3", "Help.")
        agent = Agent(
            "support", prompt, model=server.bundle(), tools=[find_order], metadata={"customer": "ann"}
        )
        session = SQLiteSession("chat-1")
        for asked in ("Where is order 7?", "And order 8?"):
            agent.run(asked, session=session)
        session.close()
    assert exporter.force_flush(FLUSH)
    assert exporter.stats() == OtelStats(sent=8)
    set_trace_processors([])
    exporter._ending()


def test_phoenix_shows_conversation_user_messages_tokens_and_errors(
    phoenix: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    converse(phoenix, monkeypatch)
    project = "/v1/projects/shop"
    spans = phoenix.shown(lambda: phoenix.get(f"{project}/spans?limit=100")["data"], 8)
    (session,) = phoenix.get(f"{project}/sessions")["data"]
    assert (session["session_id"], len(session["traces"])) == ("chat-1", 2)
    assert (session["token_count_prompt"], session["token_count_completion"]) == (40, 20)
    assert {span["attributes"]["user.id"] for span in spans} == {"ann"}
    roots = [span for span in spans if span["parent_id"] is None]
    first, last = sorted(roots, key=lambda root: str(root["start_time"]))
    assert first["span_kind"] == last["span_kind"] == "AGENT"
    kinds = sorted(span["span_kind"] for span in spans if span["parent_id"] == last["context"]["span_id"])
    assert kinds == ["LLM", "LLM", "TOOL"]
    said = last["attributes"]
    assert said["llm.input_messages.0.message.content"] == "And order 8?"
    assert said["llm.output_messages.0.message.content"] == "I cannot find it."
    assert (said["gen_ai.prompt.name"], said["gen_ai.prompt.version"]) == ("support", "v3")
    (tool,) = [span for span in spans if span["status_code"] == "ERROR"]
    assert (tool["name"], tool["attributes"]["error.type"]) == ("execute_tool find_order", "KeyError")
    assert tool["attributes"]["tool.parameters.number"] == 8


def test_logfire_in_the_process_takes_the_spans_and_hides_only_the_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = InMemorySpanExporter()
    processors = [SimpleSpanProcessor(kept)]
    logfire.configure(send_to_logfire=False, console=False, additional_span_processors=processors)
    provider = logfire.DEFAULT_LOGFIRE_INSTANCE.config.get_tracer_provider()
    exporter = OtelExporter(tracer_provider=provider, user_key="customer")
    set_trace_processors([exporter])
    with OfflineServer(["Hello."]) as server:
        agent = Agent("support", "Help.", model=server.bundle(), metadata={"customer": "ann"})
        agent.run("Hi", run_config=RunConfig(group_id="chat-1"))
    exporter.force_flush()
    set_trace_processors([])
    for span in kept.get_finished_spans():
        said = span.attributes or {}
        assert (said["gen_ai.conversation.id"], said["user.id"]) == ("chat-1", "ann")
        assert "Scrubbed" in str(said["session.id"])


def test_mlflow_shows_conversation_user_messages_tokens_and_errors(
    mlflow: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    converse(mlflow, monkeypatch)
    place = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "0"}}
    search, wanted = "/api/3.0/mlflow/traces/search", {"locations": [place], "max_results": 10}
    traces = mlflow.shown(lambda: mlflow.get(search, wanted).get("traces", []), 2)
    last, first = sorted(traces, key=lambda trace: trace["request_time"], reverse=True)
    for trace in (first, last):
        about = trace["trace_metadata"]
        assert (about["mlflow.trace.session"], about["mlflow.trace.user"]) == ("chat-1", "ann")
        tokens = {"input_tokens": 20, "output_tokens": 10, "total_tokens": 30}
        assert json.loads(about["mlflow.trace.tokenUsage"]) == tokens
        assert trace["tags"]["service.name"] == "shop"
    assert "And order 8?" in last["request_preview"]
    assert "I cannot find it." in last["response_preview"]
    path = f"/api/3.0/mlflow/traces/get?trace_id={last['trace_id']}&allow_partial=true"
    spans = mlflow.get(path)["trace"]["spans"]
    said = {span["name"]: {one["key"]: one["value"] for one in span["attributes"]} for span in spans}
    assert {name: about["mlflow.spanType"]["string_value"] for name, about in said.items()} == {
        "invoke_agent support": "AGENT",
        "chat offline-model": "CHAT_MODEL",
        "execute_tool find_order": "TOOL",
    }
    (tool,) = [span for span in spans if span["name"] == "execute_tool find_order"]
    assert tool["status"]["code"] == "STATUS_CODE_ERROR"
    assert said[tool["name"]]["error.type"]["string_value"] == "KeyError"
    assert said["invoke_agent support"]["gen_ai.prompt.version"]["string_value"] == "v3"
