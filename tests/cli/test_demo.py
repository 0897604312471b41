"""``kantan-agents demo``: its output, its database, and errors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from kantan_llm.tracing import SQLiteTracer
from kantan_llm.tracing.analysis import find_failed_judges, group_failed_by_bucket

from kantan_agents.cli.demo import agents
from kantan_agents.cli.demo.agents import script
from kantan_agents.testing import Reply

TRACE_ID = re.compile(r"trace_[0-9a-f]{32}")


def flat(text: str) -> str:
    """The words of an output without boxes and line ends."""
    return " ".join(re.sub(r"[│╭╮╰╯─├└]", " ", text).split())


def test_a_process_shows_the_main_workflow_and_records_it(process: Any, database: Any) -> None:
    # A proxy from the environment cannot reach the loopback server and must not be used.
    proxy = dict.fromkeys(("HTTP_PROXY", "http_proxy", "ALL_PROXY"), "http://127.0.0.1:9")
    outcome = process("demo", "--db", str(database.path), env=proxy)
    assert (outcome.code, outcome.stderr) == (0, "")
    assert "\x1b" not in outcome.stdout
    assert max(map(len, outcome.stdout.splitlines())) <= 80
    shown = flat(outcome.stdout)
    for part in (
        "The model is scripted. No provider is called",
        "The customer is {{ $ctx.customer.name }} ({{ $ctx.customer.plan }} plan).",
        "The customer is Aiko Tanaka (premium plan).",
        "version v2",
        'look_up_order({"order_id": "4711"})',
        'context["answer"] reply Order 4711 is in transit',
        'context["history"] user Where is my order 4711?',
        "score 0.4 failed",
        "empathy 0.4 empathy - the delay",
        "the answer came from support-answer v2",
        "3 HTTP requests were sent, all of them to 127.0.0.1.",
        "The traces are in",
    ):
        assert part in shown
    judge, support = database.traces()
    assert set(TRACE_ID.findall(outcome.stdout)) == {judge.trace_id, support.trace_id}
    assert support.metadata["prompt_version"] == "v2"
    assert support.metadata["prompt_meta_owner"] == "support team"
    assert judge.metadata["judged_trace_id"] == support.trace_id


def test_its_traces_are_found_by_keyword_version_and_failed_rubric(kantan_agents: Any, database: Any) -> None:
    assert kantan_agents("demo", "--db", str(database.path)).code == 0
    judge, support = database.traces(keywords=["4711"])
    version = {"prompt_name": "support-answer", "prompt_version": "v2"}
    assert [trace.trace_id for trace in database.traces(metadata=version)] == [support.trace_id]
    tracer = SQLiteTracer(str(database.path))
    try:
        failed = find_failed_judges(tracer, 0.7)
        assert [span.trace_id for span in failed] == [judge.trace_id]
        assert list(group_failed_by_bucket(failed)) == ["empathy"]
    finally:
        tracer.shutdown()


def test_runs_are_added_to_an_existing_database_and_the_newest_are_shown(
    kantan_agents: Any, database: Any
) -> None:
    first = kantan_agents("demo", "--db", str(database.path))
    second = kantan_agents("demo", "--db", str(database.path))
    assert (first.code, second.code) == (0, 0)
    assert len(database.traces()) == 4
    older, both = (set(TRACE_ID.findall(outcome.stdout)) for outcome in (first, second))
    assert older < both
    assert len(both) == 4


def test_the_temporary_database_is_deleted(kantan_agents: Any, temporary_files: Path) -> None:
    outcome = kantan_agents("demo")
    assert outcome.code == 0
    assert "Deleted, as neither --db nor --keep was given" in outcome.stdout
    assert list(temporary_files.iterdir()) == []


def test_keep_keeps_the_temporary_database(kantan_agents: Any, temporary_files: Path) -> None:
    outcome = kantan_agents("demo", "--keep")
    assert outcome.code == 0
    (directory,) = temporary_files.iterdir()
    (path,) = directory.iterdir()
    assert "The traces are in" in outcome.stdout
    assert path.name in outcome.stdout
    tracer = SQLiteTracer(str(path))
    assert tracer.get_trace(TRACE_ID.findall(outcome.stdout)[0]) is not None
    tracer.shutdown()


def test_a_model_name_is_called_at_its_provider(kantan_agents: Any, serve: Any, database: Any) -> None:
    with serve(script()) as server:
        outcome = kantan_agents("demo", "--model", "ollama/llama3.2", "--db", str(database.path))
    assert (outcome.code, outcome.stderr) == (0, "")
    assert "The model is ollama/llama3.2, called at its provider." in outcome.stdout
    assert "scripted" not in outcome.stdout
    assert "HTTP requests" not in outcome.stdout
    assert {request.model for request in server.requests} == {"llama3.2"}
    assert len(database.traces(keywords=["4711"])) == 2


def test_an_answer_that_passes_is_not_listed_as_failed(
    kantan_agents: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = [*script()[:2], {"score": 0.9, "comments": ["accuracy - all of it is so"]}]
    monkeypatch.setattr(agents, "script", lambda: replies)
    outcome = kantan_agents("demo")
    assert outcome.code == 0
    assert "score  0.9  passed, the pass mark is 0.7" in outcome.stdout
    assert "nothing failed" in outcome.stdout


def test_a_model_that_calls_no_tool_and_gives_no_comments(
    kantan_agents: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents, "script", lambda: [script()[1], {"score": 0, "comments": []}])
    outcome = kantan_agents("demo")
    assert (outcome.code, outcome.stderr) == (0, "")
    assert "look_up_order(" not in outcome.stdout
    assert "The model has not called the tool." in outcome.stdout


def test_a_score_outside_the_scale_has_not_passed(
    kantan_agents: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents, "script", lambda: [*script()[:2], {"score": 97.5, "comments": ["4711"]}])
    outcome = kantan_agents("demo")
    assert (outcome.code, outcome.stderr) == (0, "")
    assert "score 97.5 neither passed nor failed" in flat(outcome.stdout)


def test_answers_that_do_not_fit_end_it_with_what_to_do(
    kantan_agents: Any, serve: Any, database: Any
) -> None:
    with serve([*script()[:2], *9 * [Reply('{"score": 0.', is_cut=True)]]):
        outcome = kantan_agents("demo", "--model", "compat/small", "--db", str(database.path))
    assert outcome.code == 1
    assert outcome.stderr.startswith("error: [kantan-agents][E40] No valid output for Rubric")
    assert outcome.stderr.count("\n") == 1
    shown = flat(outcome.stdout)
    assert "The demo ends here, because a run has failed." in shown
    assert "kantan-agents models check compat/small" in shown
    assert "kantan-agents traces list --db" in shown


def test_model_output_is_never_markup(kantan_agents: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "[bold red]x[/] [/nope] :smile: \x1b[31mred\x07"
    replies = [
        script()[0],
        {"reply": said, "order_status": "late", "needs_human": False},
        {"score": 0.1, "comments": [f"[{said}"]},
    ]
    monkeypatch.setattr(agents, "script", lambda: replies)
    outcome = kantan_agents("demo")
    assert outcome.code == 0
    assert "[bold red]x[/] [/nope] :smile: [U+001B][31mred" in outcome.stdout
    assert "\x1b" not in outcome.stdout


def test_colours_can_be_forced(kantan_agents: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    outcome = kantan_agents("demo")
    assert outcome.code == 0
    assert "\x1b[" in outcome.stdout
    assert "at work" not in outcome.stdout


@pytest.mark.parametrize("columns", ["30", "400"])
def test_any_width_of_the_terminal(kantan_agents: Any, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    outcome = kantan_agents("demo")
    assert outcome.code == 0
    assert max(map(len, outcome.stdout.splitlines())) <= 100


def test_an_unknown_model_is_refused_before_anything_is_shown(
    kantan_agents: Any, temporary_files: Path
) -> None:
    outcome = kantan_agents("demo", "--model", "foo")
    assert (outcome.code, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith(
        "error: [kantan-agents][E19] Model not found: foo. For your own server, write"
    )
    assert list(temporary_files.iterdir()) == []


def test_an_error_of_the_provider_is_one_line(kantan_agents: Any, serve: Any, temporary_files: Path) -> None:
    with serve([Reply("no\nmoney", status=401)]):
        outcome = kantan_agents("demo", "--model", "ollama/llama3.2")
    assert outcome.code == 1
    assert outcome.stderr == "error: [openai][401] no money\n"
    assert list(temporary_files.iterdir()) == []


def test_a_database_that_cannot_be_used(kantan_agents: Any, tmp_path: Path) -> None:
    outcome = kantan_agents("demo", "--db", str(tmp_path))
    assert (outcome.code, outcome.stdout) == (2, "")
    assert outcome.stderr == (f"error: [kantan-agents][E79] Cannot use {tmp_path}: it is a directory\n")
