"""``kantan-agents models check``."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, ClassVar

import pytest

from kantan_agents.cli.models import providers
from kantan_agents.testing import RecordedRequest, Reply, ScriptedToolCall
from tests.cli.conftest import Invoke

KEY = "sk-not-a-real-key-0123456789abcdef"
SUM = ScriptedToolCall("add", {"a": 4821, "b": 3977})
PARIS = {"city": "Paris", "country": "France"}


def able(request: RecordedRequest) -> Any:
    if request.body.get("response_format"):
        return json.dumps(PARIS)
    if request.body.get("tools"):
        return SUM
    return "One, two, three, four, five, and then six." if request.streamed else "Hello!"


def rows(outcome: Any) -> dict[str, dict[str, Any]]:
    return {row["question"]: row for row in json.loads(outcome.stdout)["questions"]}


def test_a_model_that_can_everything(kantan_agents: Invoke, serve: Any) -> None:
    with serve(able) as server:
        url = server.base_url
        outcome = kantan_agents("models", "check", "compat/local")
        asked = len(server.requests)
        data = json.loads(kantan_agents("models", "check", "compat/local", "--json").stdout)
    assert (outcome.code, outcome.stderr) == (0, "")
    assert asked == 4
    lines = outcome.stdout.splitlines()
    assert lines[0] == f"compat/local: {url} (chat completions)"
    assert [line.split()[:2] for line in lines[2:4]] == [["text", "works"], ["stream", "works"]]
    assert "add(4821, 3977)" in outcome.stdout
    assert "Output mode: native, the first of native, tool, prompt (family local)." in outcome.stdout
    assert "With tools: tool, native, prompt, in this order (family local)." in outcome.stdout
    assert (data["works"], data["output_mode"], data["family"]) == (True, "native", "local")
    assert data["output_modes_with_tools"] == ["tool", "native", "prompt"]
    assert max(request.body["max_tokens"] for request in server.requests) == 500


def test_a_model_without_tools_and_a_server_without_schemas(kantan_agents: Invoke, serve: Any) -> None:
    def reply(request: RecordedRequest) -> Any:
        if request.body.get("response_format"):
            return Reply("no response_format here", status=400)
        return (
            json.dumps(PARIS)
            if "MUST respond" in json.dumps(request.body)
            else "I am a lamp, and I cannot call any tool at all."
        )

    with serve(reply):
        outcome = kantan_agents("models", "check", "ollama/tiny", "--json")
    found = rows(outcome)
    assert outcome.code == 1
    assert [row["works"] for row in found.values()] == [True, True, False, True, True]
    assert (
        found["tool call"]["detail"]
        == "the tool was not called; the answer was: I am a lamp, and I cannot call any tool at all."
    )
    data = json.loads(outcome.stdout)
    assert data["output_mode"] == "prompt"
    assert "no response_format here" in data["output_mode_reason"]
    assert "tool: no JSON in the reply" in data["output_mode_reason"]


def test_a_correction_is_no_reason_for_the_output_mode(kantan_agents: Invoke, serve: Any) -> None:
    asked: list[bool] = []

    def reply(request: RecordedRequest) -> Any:
        asked.append(bool(request.body.get("response_format")))
        return Reply('{"city": "Par', is_cut=True) if asked.count(True) == 1 and asked[-1] else able(request)

    with serve(reply):
        outcome = kantan_agents("models", "check", "compat/local")
    assert "Output mode: native, the first of native, tool, prompt (family local)." in outcome.stdout


def test_a_server_that_reports_no_tokens_and_streams_nothing(kantan_agents: Invoke, serve: Any) -> None:
    with serve(lambda request: "" if request.streamed else able(request), profile=None) as server:
        server._profile = None
        outcome = kantan_agents("models", "check", "compat/local", "--max-tokens", "20", "--json")
    found = rows(outcome)
    assert outcome.code == 1
    assert "no text in 20 tokens" in found["stream"]["detail"]


def test_after_a_text_that_fails_nothing_else_is_asked(kantan_agents: Invoke, serve: Any) -> None:
    message = f"Incorrect API key provided: {KEY}"
    with serve(lambda request: Reply(message, status=401)) as server:
        outcome = kantan_agents("models", "check", "compat/local")
    assert outcome.code == 1
    assert len(server.requests) == 1
    assert "[openai][401] Incorrect API key provided" in outcome.stdout
    assert "KANTAN_LLM_API_KEY must be the key" in outcome.stdout
    assert KEY not in outcome.stdout + outcome.stderr
    assert outcome.stdout.count("not asked") == 4


def test_a_server_that_is_away_is_named(kantan_agents: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KANTAN_LLM_BASE_URL", "http://127.0.0.1:9/v1")
    away = kantan_agents("models", "check", "compat/local")
    assert (away.code, away.stderr) == (1, "")
    assert "Connection error: http://127.0.0.1:9" in away.stdout


def test_a_server_that_does_not_answer_in_time(kantan_agents: Invoke, serve: Any) -> None:
    released = threading.Event()

    def reply(request: RecordedRequest) -> Any:
        released.wait(10)
        return "late"

    with serve(reply):
        outcome = kantan_agents("models", "check", "compat/local", "--timeout", "0.2")
        released.set()
    assert outcome.code == 1
    assert "no answer within 0.2 s" in " ".join(outcome.stdout.split())


def test_mistakes_are_one_line_and_exit_code_2(
    kantan_agents: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    kantan_agents("models", "check", "no-such-model").is_one_error("[E19] Model not found: no-such-model")
    kantan_agents("models", "check", "openrouter/x").is_one_error(
        "[E47] Model openrouter/x is not configured"
    )
    kantan_agents("models", "check", "ollama/x").is_one_error("[E47] Model ollama/x is not configured")
    assert "11434" in kantan_agents("models", "check", "ollama/x").stderr
    kantan_agents("models", "check", "compat/").is_one_error(
        "[E19] Model not found: compat/. A name follows the slash: compat/NAME."
    )
    kantan_agents("models", "check", " ").is_one_error("[E75]")
    kantan_agents("models", "check", "a", "b").is_one_error("[usage]")
    kantan_agents("models", "check", "a", "--timeout", "no").is_one_error("[usage]")
    monkeypatch.setenv("OPENAI_API_KEY", f'"{KEY}"')
    outcome = kantan_agents("models", "check", "gpt-6.1-terra")
    outcome.is_one_error("[E47]")
    assert KEY not in outcome.stderr


class _Models(BaseHTTPRequestHandler):
    body = json.dumps({"object": "list", "data": [{"id": f"m{number}"} for number in range(5)]}).encode()
    status = 200
    seen: ClassVar[list[Any]] = []

    def do_GET(self) -> None:
        self.seen.append((self.path, self.headers.get("Authorization")))
        self.send_response(self.status)
        self.send_header("Location", "http://192.0.2.1/")
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def listing(**changes: Any) -> Iterator[tuple[str, list[Any]]]:
    """Serve a list of models; yield the URL and the requests."""
    seen: list[Any] = []
    server = HTTPServer(("127.0.0.1", 0), type("Models", (_Models,), {"seen": seen, **changes}))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(autouse=True)
def _no_usual_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers, "_USUAL_PORTS", {})


def listed(kantan_agents: Invoke) -> dict[str, Any]:
    outcome = kantan_agents("models", "check", "--json")
    assert (outcome.code, outcome.stderr) == (0, "")
    assert KEY not in outcome.stdout
    return {next(iter(one["variables"])): one for one in json.loads(outcome.stdout)["providers"]}


def test_without_a_name_the_providers_and_their_variables_are_listed(
    kantan_agents: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OLLAMA_BASE_URL", f"http://user:{KEY}@gpu.example.com:11434")
    outcome = kantan_agents("models", "check")
    assert outcome.code == 0
    assert KEY not in outcome.stdout
    shown = " ".join(outcome.stdout.split())
    assert "openai/... OPENAI_API_KEY set" in shown
    assert "openrouter/... OPENROUTER_API_KEY not set" in shown
    assert "http://gpu.example.com:11434/v1 is not on this machine, and was not contacted" in shown
    found = listed(kantan_agents)
    assert found["OPENAI_API_KEY"]["is_set"]
    assert not found["GOOGLE_API_KEY"]["is_set"]


def test_a_server_of_this_machine_is_asked_for_its_models(
    kantan_agents: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    with listing() as (url, seen):
        monkeypatch.setenv("OLLAMA_BASE_URL", url)
        monkeypatch.setenv("KANTAN_LLM_API_KEY", KEY)
        shown = " ".join(kantan_agents("models", "check").stdout.split())
    assert "answers: ollama/m0, ollama/m1, ollama/m2 and 2 more" in shown
    assert seen == [("/v1/models", f"Bearer {KEY}")]


def test_the_usual_ports_are_tried_without_a_key(
    kantan_agents: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    with listing() as (url, seen):
        port = int(url.rpartition(":")[2])
        monkeypatch.setattr(providers, "_USUAL_PORTS", {"ollama": (port,), "lmstudio": (9,)})
        monkeypatch.setenv("KANTAN_LLM_API_KEY", KEY)
        shown = " ".join(kantan_agents("models", "check").stdout.split())
    assert f"export OLLAMA_BASE_URL={url}/v1" in shown
    assert "127.0.0.1:9" not in shown
    assert seen == [("/v1/models", None)]


@pytest.mark.parametrize(
    "changes",
    [
        {"status": 302, "body": b""},
        {"status": 401, "body": b"{}"},
        {"body": b"<html>"},
        {"body": b"[1]"},
        {"body": b'{"data": [1, {"id": 2}, null]}'},
        {"body": b"[" * 100_000},
        {"body": b"x" * (1 << 21)},
    ],
    ids=["redirect", "key", "html", "list", "odd", "deep", "long"],
)
def test_odd_lists_of_models(
    kantan_agents: Invoke, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
) -> None:
    with listing(**changes) as (url, seen):
        monkeypatch.setenv("LMSTUDIO_BASE_URL", url)
        found = kantan_agents("models", "check")
    assert found.code == 0
    shown = " ".join(found.stdout.split())
    assert "no list of models" in shown
    assert ("KANTAN_LLM_API_KEY must be the key" in shown) == (changes.get("status") == 401)
    assert len(seen) == 1


def test_urls_that_are_wrong_or_do_not_answer(kantan_agents: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_BASE_URL", "localhost")
    monkeypatch.setenv("LMSTUDIO_BASE_URL", "http://127.0.0.1:9")
    shown = " ".join(kantan_agents("models", "check").stdout.split())
    assert "OLLAMA_BASE_URL must be an http(s) URL" in shown
    assert "http://127.0.0.1:9/v1 does not answer" in shown
