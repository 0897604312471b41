"""``kantan-agents eval label``: a queue in the terminal."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import agents
import pytest

from kantan_agents import Agent, TraceStore
from kantan_agents.lab import (
    Case,
    Dataset,
    Evaluation,
    FinishedCase,
    LabelQueue,
    Score,
    evaluate,
    evaluator,
    labels_of,
)
from kantan_agents.testing import ScriptedModel, ScriptedToolCall
from kantan_agents.traces.store import connection as connections
from tests.cli.chat.terminal import Terminal
from tests.cli.conftest import Invoke
from tests.cli.imports import assert_none_imports_the_sdk
from tests.cli.recorded_runs import MARKUP, STEERING, ask, recording
from tests.lab.evaluation.labels.shop import copied, evaluate_shop
from tests.programs import Preloaded


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    agents.set_trace_processors([])
    path = tmp_path_factory.mktemp("labels") / "traces.sqlite3"
    evaluate_shop(path, 3, context={"customer": {"name": "Aiko"}}, expected="right")
    return path


@pytest.fixture
def evaluation(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Evaluation]:
    with copied(recorded) as found:
        monkeypatch.setenv("KANTAN_AGENTS_DB", str(found.path))
        yield found


COMMAND = ("eval", "label", "shop", "--metric", "helpful", "--by", "aiko")


def test_answers_are_stored_and_followed_by_the_score_and_in_the_end_the_variants(
    evaluation: Evaluation, kantan_agents: Invoke
) -> None:
    outcome = kantan_agents(*COMMAND, stdin=b"y\n0.25\nq\n")
    assert (outcome.code, outcome.stderr) == (0, "")
    first, second = labels_of(evaluation, "helpful")
    assert {first.value, second.value} == {1.0, 0.25}
    assert first.case_id == second.case_id and first.probability == 1.0
    before, answered, rest = outcome.stdout.partition("you say 1, the judge says")
    assert answered and "the judge says" not in before and "is v1" not in before
    for part in (f"1 of 6: {first.case_id}", "question", "customer: {", "Aiko", "expected  right"):
        assert part in before
    assert "is v1" not in rest.partition("you say 0.25")[0]
    assert "1 is v" in rest.partition("you say 0.25")[2]
    assert "2 labels, 4 left" in rest
    assert "agreement on helpful: cannot tell, only aiko has labelled anything" in rest


def test_the_same_command_goes_on_where_it_stopped_and_the_end_of_input_keeps_what_is_done(
    evaluation: Evaluation, kantan_agents: Invoke
) -> None:
    assert kantan_agents(*COMMAND, stdin=b"y\ny\n").code == 0
    outcome = kantan_agents(*COMMAND, stdin=b"n\nn\nn\nn\n")
    assert "1 of 4" in outcome.stdout and "4 labels, 0 left" in outcome.stdout
    assert sorted(one.value for one in labels_of(evaluation)) == [0.0] * 4 + [1.0] * 2
    outcome = kantan_agents(*COMMAND, stdin=b"")
    assert outcome.code == 0 and "Nothing to label for aiko." in outcome.stdout
    assert kantan_agents(*COMMAND, stdin=b"").code == 0


def test_comments_skipping_and_undoing(evaluation: Evaluation, kantan_agents: Invoke) -> None:
    lines = b"u\nc too short\n\ny\nu\nc\nreally too short\nn\ns\nmaybe\n7\nq\n"
    outcome = kantan_agents(*COMMAND, stdin=lines)
    assert outcome.code == 0
    (found,) = labels_of(evaluation)
    assert (found.value, found.comment) == (0.0, "really too short")
    assert "There is nothing to undo." in outcome.stdout
    assert outcome.stdout.count("1 of 6") == 2
    assert "The answer must be y, n or 0 to 1." in outcome.stdout
    assert "The answer must be y, n or 0 to 1, not 7.0." in outcome.stdout
    assert "1 label, 1 skipped, 4 left" in outcome.stdout


def test_grades_and_yes_or_no(evaluation: Evaluation, kantan_agents: Invoke) -> None:
    outcome = kantan_agents(*COMMAND, "--scale", "1-5", "--sample", "1", stdin=b"y\n4\n1\n")
    assert "1 to 5; c comment" in outcome.stdout and "The answer must be 1 to 5" in outcome.stdout
    assert {(one.value, one.label) for one in labels_of(evaluation)} == {(0.75, "4"), (0.0, "1")}
    assert {one.probability for one in labels_of(evaluation)} == {1 / 3}
    outcome = kantan_agents(*COMMAND[:-1], "bo", "--scale", "yesno", "--variant", "v1", stdin=b"0.5\nyes\nq")
    assert "y or n; c comment" in outcome.stdout and "you say yes" in outcome.stdout
    assert "1 label, 2 left" in outcome.stdout


def test_json_is_a_summary_on_standard_output(evaluation: Evaluation, kantan_agents: Invoke) -> None:
    outcome = kantan_agents(*COMMAND, "--sample", "2", "--json", stdin=b"y\ns\n")
    assert outcome.code == 0
    summary = json.loads(outcome.stdout)
    agreement = summary.pop("agreement")
    assert summary == {
        "evaluation": "shop",
        "metric": "helpful",
        "by": "aiko",
        "labelled": 1,
        "skipped": 1,
        "left": 2,
        "probability": 2 / 3,
    }
    assert agreement["people"] == ["aiko"]
    assert "c comment" in outcome.stderr


def test_a_metric_that_no_evaluator_has_may_be_labelled_and_is_mentioned(
    evaluation: Evaluation, kantan_agents: Invoke
) -> None:
    outcome = kantan_agents(*COMMAND[:4], "polite", "--by", "aiko", stdin=b"y\n")
    assert "no evaluator has scores of polite; there are generous, helpful" in outcome.stdout
    assert "you say 1\n" in outcome.stdout
    assert [one.metric for one in labels_of(evaluation)] == ["polite"]


def test_what_agents_and_judges_say_is_plain_text(
    tmp_path: Path, kantan_agents: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = f"{STEERING}{MARKUP}"

    def look(what: str) -> str:
        """Look something up."""
        return hostile

    @evaluator(version="1")
    def helpful(finished: FinishedCase) -> Score:
        return Score(0.5, label=hostile, comment=hostile)

    agents.set_trace_processors([])
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "400")
    model = ScriptedModel([[ScriptedToolCall("look", {"what": hostile})], hostile])
    agent = Agent("shop", "Help.", model=model, tools=[look])
    items = [{"role": "user", "content": "first"}, {"role": "user", "content": hostile}]
    case = Case(items, id=hostile, context={hostile: hostile}, expected={"is": hostile})
    path = tmp_path / "t.sqlite3"
    evaluate({hostile: agent}, Dataset("d", [case]), helpful, name="shop", store=path)
    outcome = kantan_agents(*COMMAND, "--db", str(path), stdin=b"c " + hostile.encode() + b"\ny\n")
    assert outcome.code == 0, outcome.stderr
    assert "\x1b[2J" not in outcome.stdout and "\x07" not in outcome.stdout and "\x9b" not in outcome.stdout
    assert outcome.stdout.count("[bold red]x[/]") >= 8
    assert "user: first" in outcome.stdout
    evaluation = Evaluation.load(TraceStore(path), "shop")
    assert labels_of(evaluation)[0].comment == hostile


def test_a_run_that_is_deleted_meanwhile_is_left_out(
    evaluation: Evaluation, kantan_agents: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = LabelQueue.label

    def deleted(queue: LabelQueue, *arguments: object, **options: object) -> object:
        TraceStore(evaluation.path).prune(keep=0)
        return real(queue, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(LabelQueue, "label", deleted)
    outcome = kantan_agents(*COMMAND, stdin=b"y\n")
    assert outcome.code == 0
    assert "Its run was deleted meanwhile" in outcome.stdout


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"shop": "shops"}, "[E104]"),
        ({"helpful": ""}, "[E75]"),
        ({"aiko": " "}, "[E75]"),
        ({"--by": "--nobody"}, "[usage]"),
    ],
)
def test_bad_arguments(
    evaluation: Evaluation, kantan_agents: Invoke, change: dict[str, str], says: str
) -> None:
    outcome = kantan_agents(*(change.get(word, word) for word in COMMAND), stdin=b"y\n")
    assert outcome.code == 2
    assert says in outcome.stderr and outcome.stderr.count("\n") == 1
    assert labels_of(evaluation) == ()


def test_last_is_the_newest_evaluation(evaluation: Evaluation, kantan_agents: Invoke) -> None:
    outcome = kantan_agents(*COMMAND[:2], "LAST", *COMMAND[3:], "--json", stdin=b"y\nq\n")
    assert outcome.code == 0, outcome.stderr
    assert json.loads(outcome.stdout)["evaluation"] == evaluation.name
    assert len(labels_of(evaluation)) == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--scale", "5-1"), "Invalid option --scale"),
        (("--variant", "v9"), "v9"),
        (("--sample", "0"), "--sample"),
        (("--db", "nothing.sqlite3"), "[E60]"),
    ],
)
def test_bad_options(
    evaluation: Evaluation, kantan_agents: Invoke, options: tuple[str, ...], says: str
) -> None:
    outcome = kantan_agents(*COMMAND, *options, stdin=b"y\n")
    assert outcome.code == 2
    assert says in outcome.stderr and outcome.stderr.count("\n") == 1


def test_input_that_is_not_text_is_an_error_and_keeps_what_is_done(
    evaluation: Evaluation, kantan_agents: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = iter(["y\n"])

    class Broken:
        def readline(self) -> str:
            for line in read:
                return line
            raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")

        def isatty(self) -> bool:
            return False

    monkeypatch.setattr(sys, "stdin", Broken())
    outcome = kantan_agents(*COMMAND)
    assert (outcome.code, "[E79]" in outcome.stderr) == (2, True)
    assert len(labels_of(evaluation)) == 1
    monkeypatch.setattr(sys, "stdin", None)
    assert kantan_agents(*COMMAND).code == 0


def test_a_database_of_traces_alone_has_no_evaluation(tmp_path: Path, kantan_agents: Invoke) -> None:
    path = tmp_path / "t.sqlite3"
    with recording(path):
        ask("a", "Help.", "Hi?", ["Hi."])
    outcome = kantan_agents(*COMMAND, "--db", str(path), stdin=b"y\n")
    assert (outcome.code, "[E104]" in outcome.stderr) == (2, True)


def test_a_locked_database_is_an_error_that_keeps_what_is_done(
    evaluation: Evaluation, kantan_agents: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_CHANGE_WAIT_SECONDS", 0.0)
    kantan_agents(*COMMAND, stdin=b"y\n")
    with closing(sqlite3.connect(evaluation.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        outcome = kantan_agents(*COMMAND, stdin=b"y\n")
    assert (outcome.code, "[E60]" in outcome.stderr) == (2, True)
    assert len(labels_of(evaluation)) == 1


def test_in_a_real_terminal_ctrl_c_keeps_what_is_done(
    evaluation: Evaluation, preloaded: Preloaded, tmp_path: Path
) -> None:
    environment = {**os.environ, "KANTAN_AGENTS_DB": str(evaluation.path), "TERM": "xterm"}
    with Terminal(preloaded, *COMMAND, env=environment, cwd=tmp_path) as terminal:
        terminal.wait_for("q quit >")
        terminal.enter("y", until="q quit >", count=2)
        terminal.interrupt_until("interrupted: 1 label kept; the same command goes on with the others")
        assert terminal.wait_for_end() == 130
        assert "you say 1, the judge says" in terminal.shown
    assert len(labels_of(evaluation)) == 1


def test_help_and_bad_databases_do_not_import_the_sdk(tmp_path: Path) -> None:
    missing = str(tmp_path / "nothing.sqlite3")
    assert_none_imports_the_sdk(
        [["eval", "--help"], ["eval", "label", "--help"], [*COMMAND, "--db", missing]], cwd=tmp_path
    )
