"""``--json`` is complete: no list is cut without a word."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kantan_agents import RUBRIC, Agent, Prompt, SQLiteRecorder, set_trace_processors
from kantan_agents.lab import Case, Dataset, evaluate, evaluator
from kantan_agents.lab.evaluation.experiment.write_rows import open_evaluation
from kantan_agents.testing import OfflineServer
from tests.cli.agent_folder import agent_file
from tests.cli.conftest import Invoke
from tests.cli.test_help import COMMANDS

MANY = 24
"""More than the 20 entries that a person is shown."""

CHOSEN = {
    ("eval", "dataset"),
    ("replay", "cohort"),
    ("traces", "export"),
    ("traces", "report"),
}
"""Commands whose ``--limit`` chooses what is worked on, and not what is printed of it."""

WITH_JSON = {
    words: {option for one in command.params for option in one.opts}
    for words, command in COMMANDS.items()
    if any("--json" in one.opts for one in command.params)
}


@pytest.mark.parametrize("words", WITH_JSON, ids=" ".join)
def test_no_command_with_json_has_a_limit_that_nobody_gave(words: tuple[str, ...]) -> None:
    for parameter in COMMANDS[words].params:
        if "--limit" in parameter.opts and words not in CHOSEN:
            assert parameter.default is None
            assert "and all with --json" in " ".join(parameter.help.split())


@evaluator
def is_short(finished: Any) -> bool:
    """Score no output of v2."""
    return "v1" in finished.text


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a database with many runs of judges with low verdicts, of many versions, and evaluations."""
    path = tmp_path_factory.mktemp("many") / "many.sqlite3"

    def answer(request: Any) -> Any:
        prompt = str(request.system_instructions)
        return {"score": 0.1, "comments": ["word"]} if "Judge" in prompt else f"as {prompt}"

    recorder = SQLiteRecorder(path)
    set_trace_processors([recorder])
    with OfflineServer(answer) as server:
        model = server.bundle()
        for number in range(MANY):
            prompt = Prompt("judge", f"v{number}", "Judge.")
            Agent("judge", prompt, model=model, output_type=RUBRIC).run("Judge the word.")
        cases = [Case(f"question {number}", id=f"c{number}") for number in range(MANY)]
        agent = Agent("plain", "Answer.", model=model)
        evaluated = evaluate(
            {"v1": "v1", "v2": "v2"}, Dataset("many", cases), is_short, agent=agent, store=path, name="many"
        )
    set_trace_processors([])
    recorder.shutdown()
    for number in range(MANY):
        open_evaluation(path, f"e{number}", evaluated.row.body)
    return str(path)


def of_judges(data: Any) -> int:
    """Return how many verdicts are those of the judges."""
    return sum(one["bucket"] != "is_short" for one in data)


@pytest.mark.parametrize(
    ("words", "count"),
    [
        (("traces", "list", "--agent", "judge"), len),
        (("traces", "search", "word", "--agent", "judge"), len),
        (("traces", "failed"), of_judges),
        (("traces", "prompts", "judge"), len),
        (("eval", "list"), lambda data: len(data) - 1),
        (("eval", "show", "many"), lambda data: len(data["results"]) / 2),
        (("eval", "compare", "many:v1", "many:v2"), lambda data: len(data["changed_cases"])),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_long_list_of_a_database_is_complete(
    kantan_agents: Invoke, db: str, words: tuple[str, ...], count: Callable[[Any], float]
) -> None:
    outcome = kantan_agents(*words, "--json", "--db", db)
    assert outcome.code == 0, outcome.stderr
    assert count(json.loads(outcome.stdout)) == MANY


@pytest.mark.parametrize("words", [("traces", "list"), ("eval", "list")], ids=" ".join)
def test_a_person_sees_twenty(kantan_agents: Invoke, db: str, words: tuple[str, ...]) -> None:
    shown = kantan_agents(*words, "--db", db).stdout.splitlines()
    assert 20 <= sum(bool(line.strip()) for line in shown) < MANY


def test_a_limit_that_was_given_is_kept_and_what_is_missing_is_said(kantan_agents: Invoke, db: str) -> None:
    for more, has_more in ((["--limit", "5"], True), ([], False)):
        data = json.loads(kantan_agents("eval", "show", "many", "--json", "--db", db, *more).stdout)
        assert (data["has_more"], len(data["results"])) == (has_more, 5 if more else 2 * MANY)


def test_long_lists_of_files_are_complete(
    kantan_agents: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for number in range(MANY):
        agent_file(tmp_path / ".claude" / "agents" / f"a{number}.md", f"a{number}", "Does many things.")
        skill = tmp_path / ".claude" / "skills" / f"s{number}"
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text(f"---\nname: s{number}\ndescription: Many.\n---\nDo.\n")
    for words in (("agents", "list"), ("agents", "search", "many"), ("skills", "list")):
        outcome = kantan_agents(*words, "--json")
        assert outcome.code == 0, outcome.stderr
        found = json.loads(outcome.stdout)
        lists = found.values() if isinstance(found, dict) else [found]
        assert max(len(one) for one in lists if isinstance(one, list)) >= MANY, words
