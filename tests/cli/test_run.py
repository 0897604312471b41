"""``kantan-agents run``: answers on stdout, errors as one line on stderr, exit codes, the database."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import sqlite3
import sys
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from agents import TracingProcessor, set_trace_processors
from agents.models import get_default_model

from kantan_agents.testing import OfflineServer, Reply, ScriptedToolCall
from tests.distributions import ACME, HALF, Use

NO_RETRY = {"x-should-retry": "false"}


def refused(message: str, status: int) -> Reply:
    return Reply(message, status=status, headers=NO_RETRY)


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["run", os.fsdecode(b"caf\xe9")], "QUESTION"),
        (["run", "hi", "--instructions", os.fsdecode(b"caf\xe9")], "--instructions"),
        (["agents", "new", "a", "--description", "d", "--prompt", os.fsdecode(b"caf\xe9")], "--prompt"),
        (["tools", "explain", "a", "--args", os.fsdecode(b"caf\xe9")], "--args"),
    ],
)
def test_an_argument_in_another_encoding_is_refused(
    kantan_agents: Any, arguments: list[str], option: str
) -> None:
    outcome = kantan_agents(*arguments)
    assert outcome.code == 2
    assert f"[E75] Invalid option {option}: must be UTF-8 text, not b'caf\\xe9'" in outcome.stderr


class TestAnswer:
    def test_a_process_prints_the_answer_and_nothing_else(self, process: Any) -> None:
        with OfflineServer(["Paris, ça va?\nYes."]) as server:
            outcome = process("run", "Capital of France?", env=server.environment())
        assert (outcome.code, outcome.stdout, outcome.stderr) == (0, "Paris, ça va?\nYes.\n", "")
        assert server.requests[0].body["input"] == [{"content": "Capital of France?", "role": "user"}]
        assert server.requests[0].body["instructions"] == "You are a helpful assistant."

    def test_markup_in_an_answer_is_printed_unchanged(self, kantan_agents: Any, serve: Any) -> None:
        with serve(["[bold]x[/bold] [/nope] :smile: \x1b[31m"]):
            outcome = kantan_agents("run", "hi")
        assert outcome.stdout == "[bold]x[/bold] [/nope] :smile: \x1b[31m\n"

    def test_an_answer_cannot_send_control_characters_to_a_terminal(
        self, kantan_agents: Any, serve: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with serve(["\x1b[2Jgone?\ttab"]):
            monkeypatch.setattr(type(sys.stdout), "isatty", lambda _self: True)
            outcome = kantan_agents("run", "hi")
        assert outcome.stdout == "[U+001B][2Jgone?\ttab\n"

    def test_the_given_model_and_provider_are_used(self, kantan_agents: Any, serve: Any) -> None:
        with serve(["Bonjour."]) as server:
            outcome = kantan_agents("run", "hi", "--model", "ollama/llama3.2")
        assert (outcome.code, outcome.stdout) == (0, "Bonjour.\n")
        assert server.requests[0].path == "/v1/chat/completions"
        assert server.requests[0].model == "llama3.2"

    def test_question_from_standard_input(self, kantan_agents: Any, serve: Any) -> None:
        with serve(["ok"]) as server:
            assert kantan_agents("run", "-", stdin="où?\nlà\n".encode()).code == 0
        assert server.requests[0].body["input"][0]["content"] == "où?\nlà"

    def test_instructions_and_context_from_files(
        self, kantan_agents: Any, serve: Any, tmp_path: Path
    ) -> None:
        instructions = tmp_path / "instructions.md"
        instructions.write_text("Be kind to {{ $ctx.customer.name }}.", encoding="utf-8-sig")
        context = tmp_path / "context.json"
        context.write_text('{"customer": {"name": "Aïko"}}', encoding="utf-8")
        with serve(["ok"]) as server:
            outcome = kantan_agents(
                "run", "hi", "--instructions", f"@{instructions}", "--context", str(context)
            )
        assert outcome.code == 0
        assert server.requests[0].body["instructions"] == "Be kind to Aïko."

    def test_instructions_as_text(self, kantan_agents: Any, serve: Any) -> None:
        with serve(["ok"]) as server:
            kantan_agents("run", "hi", "--instructions", "Be brief.")
        assert server.requests[0].body["instructions"] == "Be brief."


class TestJson:
    def test_json_is_the_completed_context(
        self, kantan_agents: Any, serve: Any, tmp_path: Path, database: Any
    ) -> None:
        context = tmp_path / "context.json"
        context.write_text('{"customer": {"name": "Aiko"}}')
        with serve(["Hallo ✓"]):
            outcome = kantan_agents(
                "run", "hi", "--json", "--context", str(context), "--db", str(database.path)
            )
        assert outcome.code == 0
        assert outcome.stdout.count("\n") == 1
        assert "✓" in outcome.stdout
        completed = json.loads(outcome.stdout)
        result = completed.pop("result")
        assert completed == {
            "customer": {"name": "Aiko"},
            "tool_rules": {"allow": None, "deny": None, "params": {}},
            "history": [{"role": "user", "text": "hi"}, {"role": "assistant", "text": "Hallo ✓"}],
        }
        (trace,) = database.traces()
        assert result == {
            "final_output": "Hallo ✓",
            "last_agent": "assistant",
            "run_id": trace.metadata["agent_run_id"],
            "trace_id": trace.trace_id,
            "usage": {
                "requests": 1,
                "input_tokens": 10,
                "output_tokens": 5,
                "total_tokens": 15,
                "requests_without_usage": 0,
            },
            "finish_reason": "stop",
        }

    def test_a_run_that_is_not_recorded_has_no_trace_id(self, kantan_agents: Any, serve: Any) -> None:
        with serve(["ok"]):
            outcome = kantan_agents("run", "hi", "--json", "--no-record")
        assert json.loads(outcome.stdout)["result"]["trace_id"] is None

    def test_the_output_can_be_the_context_of_the_next_run(
        self, kantan_agents: Any, serve: Any, tmp_path: Path
    ) -> None:
        context = tmp_path / "context.json"
        with serve(["one", "two"]):
            context.write_text(kantan_agents("run", "first", "--json").stdout)
            outcome = kantan_agents("run", "second", "--json", "--context", str(context))
        said = [entry["text"] for entry in json.loads(outcome.stdout)["history"]]
        assert said == ["first", "one", "second", "two"]

    def test_the_output_has_no_control_characters(self, kantan_agents: Any, serve: Any) -> None:
        with serve(["\x1b[2J\x7f\x9b2J"]):
            outcome = kantan_agents("run", "hi", "--json")
        assert not {"\x1b", "\x7f", "\x9b"} & set(outcome.stdout)
        assert json.loads(outcome.stdout)["result"]["final_output"] == "\x1b[2J\x7f\x9b2J"

    def test_the_json_is_valid_if_the_encoding_lacks_a_character(
        self, kantan_agents: Any, serve: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        written = io.BytesIO()
        stdout = io.TextIOWrapper(written, encoding="ascii")
        with serve(["é ✓"]), monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", stdout)
            kantan_agents("run", "hi", "--json")
        assert json.loads(written.getvalue())["result"]["final_output"] == "é ✓"


class TestDatabase:
    def test_the_run_is_found_again(self, kantan_agents: Any, serve: Any, database: Any) -> None:
        with serve(["Lisbon it is."]):
            outcome = kantan_agents("run", "Capital?", "--model", "gpt-6.1-terra", "--db", str(database.path))
        assert (outcome.code, outcome.stdout, outcome.stderr) == (0, "Lisbon it is.\n", "")
        (trace,) = database.traces(keywords=["lisbon", "capital"])
        assert trace.metadata["agent_name"] == "assistant"
        assert database.spans(has_error=True) == []

    def test_runs_are_added_to_an_existing_database(
        self, kantan_agents: Any, serve: Any, database: Any
    ) -> None:
        with serve(["one", "two"]):
            for question in ("first", "second"):
                kantan_agents("run", question, "--db", str(database.path))
        assert len(database.traces()) == 2
        (newest,) = database.traces(limit=1)
        assert database.traces(keywords=["second"]) == [newest]

    def test_the_database_is_used_even_if_an_environment_variable_disables_tracing(
        self, kantan_agents: Any, serve: Any, database: Any
    ) -> None:
        from agents import set_tracing_disabled

        set_tracing_disabled(True)
        try:
            with serve(["ok"]):
                assert kantan_agents("run", "hi", "--db", str(database.path)).code == 0
        finally:
            set_tracing_disabled(False)
        assert len(database.traces()) == 1

    def test_a_failed_run_is_recorded_as_failed(self, kantan_agents: Any, serve: Any, database: Any) -> None:
        with serve([refused("no", 401)]):
            assert kantan_agents("run", "hi", "--db", str(database.path)).code == 1
        assert len(database.traces(has_error=True, keywords=["hi"])) == 1

    @pytest.mark.parametrize("with_database", [False, True])
    def test_traces_go_nowhere_else(
        self, kantan_agents: Any, serve: Any, database: Any, with_database: bool
    ) -> None:
        seen: list[Any] = []

        class Elsewhere(TracingProcessor):
            def on_trace_start(self, trace: Any) -> None:
                seen.append(trace)

            def on_trace_end(self, trace: Any) -> None:
                seen.append(trace)

            def on_span_start(self, span: Any) -> None:
                seen.append(span)

            def on_span_end(self, span: Any) -> None:
                seen.append(span)

            def shutdown(self) -> None:
                pass

            def force_flush(self) -> None:
                pass

        set_trace_processors([Elsewhere()])
        options = ["--db", str(database.path)] if with_database else ["--no-record"]
        with serve(["ok"]) as server:
            assert kantan_agents("run", "hi", *options).code == 0
        assert seen == []
        assert [request.path for request in server.requests] == ["/v1/responses"]

    def test_no_record_creates_no_file(
        self, kantan_agents: Any, serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.delenv("KANTAN_AGENTS_DB")
        with serve(["ok"]):
            outcome = kantan_agents("run", "hi", "--no-record")
        assert (outcome.code, outcome.stdout, outcome.stderr) == (0, "ok\n", "")
        assert list(tmp_path.iterdir()) == []

    def test_a_special_sqlite_name_is_a_plain_file_name(
        self, kantan_agents: Any, serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        with serve(["ok"]):
            kantan_agents("run", "hi", "--db", ":memory:")
        assert [path.name for path in tmp_path.iterdir()] == [":memory:"]

    def test_tables_dropped_during_the_run_are_created_again(
        self, kantan_agents: Any, serve: Any, database: Any
    ) -> None:
        def drop_tables(_request: Any) -> str:
            with sqlite3.connect(database.path) as connection:
                connection.execute("DROP TABLE spans")
            connection.close()
            return "the answer"

        with serve(drop_tables):
            outcome = kantan_agents("run", "hi", "--db", str(database.path))
        assert (outcome.code, outcome.stdout, outcome.stderr) == (0, "the answer\n", "")
        assert len(database.traces(keywords=["the answer"])) == 1

    def test_a_database_lost_during_the_run_is_an_error_after_the_answer_is_printed(
        self, kantan_agents: Any, serve: Any, database: Any
    ) -> None:
        def put_a_directory_there(_request: Any) -> str:
            database.path.unlink()
            database.path.mkdir()
            return "the answer"

        with serve(put_a_directory_there):
            outcome = kantan_agents("run", "hi", "--db", str(database.path))
        assert outcome.stdout == "the answer\n"
        assert outcome.code == 2
        assert outcome.stderr == (
            f"error: [kantan-agents][E79] Cannot use {database.path}: the run could not be recorded in it\n"
        )


class TestBadInput:
    def check(self, outcome: Any, message: str) -> None:
        assert outcome.code == 2
        assert outcome.stdout == ""
        assert outcome.stderr == f"error: [kantan-agents]{message}\n"

    def test_unknown_model(self, kantan_agents: Any) -> None:
        outcome = kantan_agents("run", "hi", "--model", "foo")
        assert outcome.code == 2
        assert "[E19] Model not found: foo. For your own server, write ollama/foo and set" in outcome.stderr

    @pytest.mark.parametrize("model", ["gpt-6.1-terra", None])
    def test_a_model_without_its_key_names_the_variable_to_set(self, kantan_agents: Any, model: Any) -> None:
        outcome = kantan_agents("run", "hi", *(["--model", model] if model else []))
        outcome.is_one_error(
            f"[E47] Model {model or get_default_model()} is not configured: "
            "the environment variable OPENAI_API_KEY is not set. "
        )

    def test_an_unknown_model_leaves_no_database_behind(self, kantan_agents: Any, database: Any) -> None:
        assert kantan_agents("run", "hi", "--model", "foo", "--db", str(database.path)).code == 2
        assert not database.path.exists()

    @pytest.mark.parametrize("question", ["", "  \n"])
    def test_an_empty_question(self, kantan_agents: Any, question: str) -> None:
        message = "[E75] Invalid option QUESTION: must not be empty"
        self.check(kantan_agents("run", question), message)
        self.check(kantan_agents("run", "-", stdin=question.encode()), message)

    def test_standard_input_that_is_not_text(self, kantan_agents: Any) -> None:
        self.check(
            kantan_agents("run", "-", stdin=b"\xff\xfe\xff"), "[E79] Cannot use -: it is not UTF-8 text"
        )

    def test_missing_standard_input(self, kantan_agents: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", None)
        self.check(kantan_agents("run", "-"), "[E79] Cannot use -: there is no standard input")

    def test_empty_instructions(self, kantan_agents: Any, tmp_path: Path) -> None:
        message = "[E75] Invalid option --instructions: must not be empty"
        self.check(kantan_agents("run", "hi", "--instructions", " "), message)
        empty = tmp_path / "empty.md"
        empty.touch()
        self.check(kantan_agents("run", "hi", "--instructions", f"@{empty}"), message)

    @pytest.mark.parametrize("option", [("--context", ""), ("--instructions", "@")])
    def test_files_that_cannot_be_read(self, kantan_agents: Any, tmp_path: Path, option: Any) -> None:
        name, mark = option
        missing = tmp_path / "missing"
        self.check(
            kantan_agents("run", "hi", name, f"{mark}{missing}"),
            f"[E79] Cannot use {missing}: No such file or directory",
        )
        outcome = kantan_agents("run", "hi", name, f"{mark}{tmp_path}")
        assert outcome.code == 2
        assert outcome.stderr.startswith(f"error: [kantan-agents][E79] Cannot use {tmp_path}: ")
        binary = tmp_path / "binary"
        binary.write_bytes(b"\x80\x81")
        self.check(
            kantan_agents("run", "hi", name, f"{mark}{binary}"),
            f"[E79] Cannot use {binary}: it is not UTF-8 text",
        )

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("[1, 2]", "it must contain a JSON object, not a list"),
            ('"text"', "it must contain a JSON object, not a str"),
            ("null", "it must contain a JSON object, not a NoneType"),
            ("{", "it is not JSON (Expecting property name enclosed in double quotes: "),
            ("", "it is not JSON (Expecting value: line 1 column 1 (char 0))"),
            ('{"score": NaN}', "it is not JSON (NaN is not allowed)"),
            ("[" * 200_000, "it is not JSON ("),
        ],
    )
    def test_a_context_that_is_not_a_json_object(
        self, kantan_agents: Any, tmp_path: Path, text: str, reason: str
    ) -> None:
        context = tmp_path / "context.json"
        context.write_text(text)
        outcome = kantan_agents("run", "hi", "--context", str(context))
        assert outcome.code == 2
        assert outcome.stdout == ""
        assert outcome.stderr.startswith(f"error: [kantan-agents][E79] Cannot use {context}: {reason}")
        assert outcome.stderr.count("\n") == 1

    @pytest.mark.parametrize(
        ("context", "message"),
        [
            ({"history": "none"}, "[E6] Context history must be a list"),
            ({"tool_rules": []}, "[E18] Tool rules must be a dict"),
        ],
    )
    def test_a_context_the_library_refuses(
        self, kantan_agents: Any, tmp_path: Path, context: Any, message: str
    ) -> None:
        path = tmp_path / "context.json"
        path.write_text(json.dumps(context))
        self.check(kantan_agents("run", "hi", "--context", str(path)), message)

    def test_databases_that_cannot_be_used(self, kantan_agents: Any, tmp_path: Path) -> None:
        def outcome(path: object) -> Any:
            return kantan_agents("run", "hi", "--db", str(path))

        self.check(outcome(tmp_path), f"[E79] Cannot use {tmp_path}: it is a directory")
        nowhere = tmp_path / "nowhere" / "traces.sqlite3"
        self.check(outcome(nowhere), f"[E79] Cannot use {nowhere}: its directory does not exist")
        text = tmp_path / "notes.txt"
        text.write_text("no database, whatever it is called\n" * 100)
        self.check(outcome(text), f"[E79] Cannot use {text}: file is not a database")
        assert text.read_text().startswith("no database")

    def test_a_database_with_other_tables(self, kantan_agents: Any, serve: Any, database: Any) -> None:
        with sqlite3.connect(database.path) as connection:
            connection.execute("CREATE TABLE spans (x TEXT)")
        connection.close()
        with serve() as server:
            outcome = kantan_agents("run", "hi", "--db", str(database.path))
        assert outcome.code == 2
        assert (
            f"[E79] Cannot use {database.path}: it is not a trace database: its table spans" in outcome.stderr
        )
        assert server.requests == []


class TestFailedRun:
    @pytest.mark.parametrize("model", [[], ["--model", "ollama/llama3.2"]], ids=["responses", "chat"])
    @pytest.mark.parametrize("status", [401, 429, 500])
    def test_http_errors(self, kantan_agents: Any, serve: Any, model: list[str], status: int) -> None:
        with serve([refused("not\ntoday", status)]):
            outcome = kantan_agents("run", "hi", *model)
        assert (outcome.code, outcome.stdout) == (1, "")
        assert outcome.stderr == f"error: [openai][{status}] not today\n"

    def test_a_process_shows_no_traceback(self, process: Any) -> None:
        with OfflineServer([refused("Incorrect API key\n  provided: x", 401)]) as server:
            outcome = process("run", "hi", env=server.environment())
        assert (outcome.code, outcome.stdout) == (1, "")
        assert outcome.stderr == "error: [openai][401] Incorrect API key provided: x\n"

    def test_the_error_names_an_unreachable_server(
        self, kantan_agents: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        monkeypatch.setenv("OPENAI_API_KEY", "offline")
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{port}/v1")
        outcome = kantan_agents("run", "hi")
        assert (outcome.code, outcome.stdout) == (1, "")
        assert outcome.stderr == (
            f"error: [openai][APIConnectionError] Connection error: http://127.0.0.1:{port}\n"
        )

    @pytest.mark.parametrize("model", [[], ["--model", "ollama/llama3.2"]], ids=["responses", "chat"])
    @pytest.mark.parametrize(
        "reply",
        [
            Reply(body=b"<html>"),
            Reply(body=b"<html>", headers={"content-type": "text/html"}),
            Reply(body=b"[]"),
        ],
        ids=["no JSON", "a page", "another JSON"],
    )
    def test_an_invalid_reply_is_an_error(
        self, kantan_agents: Any, serve: Any, model: list[str], reply: Reply
    ) -> None:
        with serve([reply]):
            outcome = kantan_agents("run", "hi", *model)
        assert (outcome.code, outcome.stdout) == (1, "")
        assert "Connection error: the answer is not a whole JSON object (content type " in outcome.stderr
        assert outcome.stderr.count("\n") == 1

    def test_a_model_that_only_calls_unknown_tools_is_stopped(self, kantan_agents: Any, serve: Any) -> None:
        with serve(lambda _request: ScriptedToolCall("no_such_tool")) as server:
            outcome = kantan_agents("run", "hi")
        assert (outcome.code, len(server.requests)) == (1, 5)
        assert outcome.stderr.startswith("error: [kantan-agents][E21] ")

    def test_errors_of_the_sdk_show_their_class_name(self, kantan_agents: Any, serve: Any, use: Use) -> None:
        use(ACME)
        with serve(lambda _request: ScriptedToolCall("search", {"query": "lamps"})):
            outcome = kantan_agents("run", "hi")
        assert outcome.code == 1
        assert outcome.stderr.startswith("error: [agents][MaxTurnsExceeded] ")

    def test_unusable_tool_providers_exit_with_2(self, kantan_agents: Any, serve: Any, use: Use) -> None:
        use(HALF)
        with serve() as server:
            outcome = kantan_agents("run", "hi")
        assert (outcome.code, outcome.stdout) == (2, "")
        assert outcome.stderr.startswith("error: [kantan-agents][E7] Tool provider must implement ")
        assert server.requests == []

    def test_a_closed_pipe_ends_the_program_quietly(
        self, kantan_agents: Any, serve: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        reading, writing = os.pipe()
        os.close(reading)
        with serve(["x" * 100_000]), os.fdopen(writing, "w") as pipe, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", pipe)
            outcome = kantan_agents("run", "hi")
        assert (outcome.code, outcome.stderr) == (1, "")

    @pytest.mark.skipif(os.name == "nt", reason="no SIGINT for another process there")
    def test_ctrl_c_ends_it_quietly(self, start: Any) -> None:
        asked = Event()

        def never(_request: Any) -> Reply:
            asked.set()
            return Reply("too late", delay=60)

        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # else a child ignores it
        try:
            with OfflineServer(never) as server:
                started = start("run", "hi", env=server.environment())
                assert asked.wait(60)
                started.send_signal(signal.SIGINT)
                assert started.communicate(timeout=60) == (b"", b"")
        finally:
            signal.signal(signal.SIGINT, before)
        assert started.returncode == 130
