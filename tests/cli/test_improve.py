"""``kantan-agents improve``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from kantan_agents.cli.improve.run_search import progress_text
from kantan_agents.lab import ImproveProgress
from tests.cli.conftest import Invoke
from tests.lab.improve.commands import arguments, write_module
from tests.lab.improve.shops import OLD, POLITE, REFLECTS, Shop, scripted, shop

MARKUP = "[bold red]x[/] [/nope] \x1b[2J\x1b]0;owned\x07 </text><script>"


@attrs.frozen
class Command:
    """A shop, and the command line that improves its prompt."""

    shop: Shop
    module: str
    folder: Path

    def __call__(self, *more: str) -> list[str]:
        return arguments(self.module, self.shop.path, *more)


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    module = write_module(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    with shop(tmp_path, count=24) as made:
        for key, value in made.server.environment().items():
            monkeypatch.setenv(key, value)
        yield Command(made, module, tmp_path)


def test_prints_the_verdict_the_diff_and_last_the_command_that_rolls_it_out(
    kantan_agents: Invoke, command: Command
) -> None:
    outcome = kantan_agents(*command("--reflection-tokens", "77", "--reflection-timeout", "30"))
    assert (outcome.code, outcome.stderr) == (0, "")
    asked = command.shop.requests_with(REFLECTS)
    assert [one.body["max_output_tokens"] for one in asked] == [77] * len(asked)
    lines = outcome.stdout.splitlines()
    assert lines[-1] == f"kantan-agents rollout promote support --db {command.shop.path}"
    assert lines[-2].startswith(
        "rollout = Rollout({'v1': agent.instructions, 'v2': new}, shares={'v1': 1, 'v2': 0}"
    )
    assert lines[-3].startswith("new = Prompt('support', 'v2', Path(")
    assert "opened 1 time, now at alpha 0.025; 0.025 is left" in outcome.stdout
    assert "v2 better on judge by 1" in outcome.stdout
    assert f"+{POLITE}" in outcome.stdout
    assert "winner" in outcome.stdout
    folder = command.folder / "support-improve"
    assert (folder / "new-version.md").read_text() == POLITE
    assert command.shop.ran == []


def test_prints_json_and_asks_nothing_the_second_time(kantan_agents: Invoke, command: Command) -> None:
    first = kantan_agents(*command("--json"))
    sent = len(command.shop.server.requests)
    second = kantan_agents(*command("--json"))
    assert len(command.shop.server.requests) == sent
    assert (first.code, first.stdout) == (0, second.stdout)
    data = json.loads(first.stdout)
    assert data["new"] == {"name": "support", "version": "v2", "text": POLITE}
    assert data["comparison"]["metrics"][0]["verdict"] == "better"


def test_quiet_prints_nothing(kantan_agents: Invoke, command: Command) -> None:
    outcome = kantan_agents(*command("--quiet"))
    assert (outcome.code, outcome.stdout, outcome.stderr) == (0, "", "")


def test_nothing_better_is_exit_code_1_and_says_why(kantan_agents: Invoke, command: Command) -> None:
    command.shop.propose = scripted(f"{OLD} Be brief.")
    outcome = kantan_agents(*command("--rounds", "2"))
    assert outcome.code == 1
    assert outcome.stderr.startswith("no new version: none of 1 candidates may win")
    assert "rejected" in outcome.stdout
    assert "rollout" not in outcome.stdout


def test_options_reach_the_search(kantan_agents: Invoke, command: Command) -> None:
    price = [f"{name}=1,2" for name in ("gpt-5-mini", "gpt-5", "offline-model")]
    outcome = kantan_agents(
        *command("--json", "--cohort", "last=7d,limit=23", "--cohort", "sample=22", "--version", "v1"),
        *(part for one in price for part in ("--price", one)),
        *("--max-cost", "5", "--reflection-model", "gpt-5"),
        *("--seed", "3", "--minibatch", "2", "--perfect", "1", "--max-length", "500"),
        *("--max-cost-increase", "0.5", "--concurrency", "2", "--new-version", "polite", "--out", "here"),
    )
    assert outcome.code == 0, outcome.stderr
    data = json.loads(outcome.stdout)
    assert sum(data["cases"].values()) == 22
    assert data["new"]["version"] == "polite"
    assert data["cost"] > 0
    assert (command.folder / "here" / "new-version.md").exists()
    assert "gpt-5" in {request.model for request in command.shop.server.requests}


@pytest.mark.parametrize("judge", ["{module}:greets", "contains:Dear", "{module}:critic"])
def test_judges_are_named_as_for_eval_run(kantan_agents: Invoke, command: Command, judge: str) -> None:
    line = command("--json")
    line[line.index("--judge") + 1] = judge.format(module=command.module)
    outcome = kantan_agents(*line)
    assert outcome.code == 0, outcome.stderr


def test_traces_are_named(kantan_agents: Invoke, command: Command) -> None:
    ids = [one.trace_id for one in command.shop.store.traces(limit=22)]
    outcome = kantan_agents(*command("--json", "--cohort", ",".join(f"trace={one}" for one in ids)))
    assert outcome.code == 0, outcome.stderr
    assert sum(json.loads(outcome.stdout)["cases"].values()) == 22


def replaced(line: list[str], option: str, value: str | None) -> list[str]:
    at = line.index(option)
    return [*line[:at], *([] if value is None else [option, value]), *line[at + 2 :]]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda line: replaced(line, "--budget", None), "[E75] Invalid option --budget: say what"),
        (lambda line: replaced(line, "--budget", "many"), "must be a number of tokens, such as 500000"),
        (lambda line: replaced(line, "--budget", "0"), "must be a number of tokens"),
        (
            lambda line: replaced(line, "--budget", "10"),
            "[E122] The budget is too small: one candidate takes",
        ),
        (lambda line: replaced(line, "--judge", "exakt"), "Invalid option --judge: there is no 'exakt'"),
        (lambda line: replaced(line, "--judge", "nothing:here"), "Invalid option --judge: nothing:here"),
        (lambda line: replaced(line, "--judge", None), "[usage] Missing option '--judge'"),
        (lambda line: replaced(line, "--agent", "none:x"), "Invalid option --agent: none:x"),
        (lambda line: replaced(line, "--agent", line[3].replace("support", "plain")), "[E120]"),
        (lambda line: replaced(line, "--db", "missing.sqlite3"), "[E60]"),
        (lambda line: [line[0], "suport", *line[2:]], "[E120] Cannot improve the prompt 'suport'"),
        (lambda line: [*line, "--version", "v9"], "no recorded run has used the version 'v9'"),
        (lambda line: [*line, "--cohort", "limit=4"], "[E121] The cohort is too small: 4 conversations"),
        (
            lambda line: [*line, "--cohort", "lasst=7d"],
            "Invalid option --cohort: 'lasst=7d' must be KEY=VALUE",
        ),
        (lambda line: [*line, "--cohort", "last=soon"], "Invalid option --cohort: must be a number with s"),
        (lambda line: [*line, "--cohort", "limit=0"], "limit must be an int, 1 or more"),
        (lambda line: [*line, "--cohort", "limit=1,limit=2"], "limit is given twice"),
        (lambda line: [*line, "--cohort", "limit=1,trace=a"], "use one of both"),
        (lambda line: [*line, "--cohort", "trace=nothing"], "[E61]"),
        (lambda line: [*line, "--max-cost", "1"], "needs the prices of the models"),
        (lambda line: [*line, "--judge-model", "gpt-5"], "is for --judge judged, not for"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    kantan_agents: Invoke, command: Command, change: Any, reason: str
) -> None:
    outcome = kantan_agents(*change(command()))
    assert outcome.code == 2, outcome
    assert reason in outcome.stderr
    assert len(outcome.stderr.splitlines()) == 1
    assert outcome.stdout == ""
    assert command.shop.server.requests == []


def test_a_folder_of_something_else_is_exit_code_2(kantan_agents: Invoke, command: Command) -> None:
    (command.folder / "support-improve").mkdir()
    (command.folder / "support-improve" / "x").write_text("")
    outcome = kantan_agents(*command())
    assert outcome.code == 2
    assert outcome.stderr.startswith("error: [kantan-agents][E123] The working folder cannot be used")


def test_what_a_model_wrote_is_shown_as_text(kantan_agents: Invoke, command: Command) -> None:
    command.shop.propose = scripted({"changes": MARKUP, "prompt": f"{OLD} {MARKUP}"}, POLITE)
    outcome = kantan_agents(*command())
    assert outcome.code == 0, outcome.stderr
    assert "\x1b" not in outcome.stdout
    assert "\x07" not in outcome.stdout
    assert "[bold red]x[/] [/nope]" in " ".join(outcome.stdout.split())
    assert outcome.stdout.splitlines()[-1].startswith("kantan-agents rollout promote")


def test_the_progress_bar_shows_how_far_it_is(
    kantan_agents: Invoke,
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert progress_text(ImproveProgress("search", 2, 10, 0.25, 0.5, 1234, None)) == (
        "round 2 of 10, validation 0.25 -> 0.5, 1,234 tokens"
    )
    assert (
        progress_text(ImproveProgress("baseline", 0, 10, None, None, 0, None))
        == "the old version runs, 0 tokens"
    )
    text = progress_text(ImproveProgress("test", 2, 10, 0.25, None, 9, 0.125))
    assert text == "held-out test, validation 0.25 -> 0.25, 9 tokens, cost 0.125"
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda _self: True, raising=False)
    outcome = kantan_agents(*command())
    assert outcome.code == 0
    assert "tokens" in outcome.stderr
