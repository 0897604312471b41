"""``kantan-agents eval diff``."""

from __future__ import annotations

import json
from pathlib import Path

from kantan_agents.lab import Case, Dataset
from tests.cli.conftest import Invoke

OLD = Dataset("old", [Case("a", id="1", expected="x"), Case("b", id="2\x1b[2J")])
NEW = Dataset("new", [Case("a", id="1", expected="y"), Case("c", id="3")])


def test_cases_that_differ_are_shown_and_the_exit_code_is_1(kantan_agents: Invoke, tmp_path: Path) -> None:
    OLD.save(tmp_path / "old.jsonl")
    NEW.save(tmp_path / "new.jsonl")
    paths = str(tmp_path / "old.jsonl"), str(tmp_path / "new.jsonl")
    outcome = kantan_agents("eval", "diff", *paths)
    assert (outcome.code, outcome.stderr) == (1, "")
    assert outcome.stdout.splitlines()[0] == "+ 3" and "\x1b" not in outcome.stdout
    assert outcome.stdout.splitlines()[2:] == ["~ 1: expected", "1 added, 1 removed, 1 changed, 0 the same"]
    data = json.loads(kantan_agents("eval", "diff", *paths, "--json").stdout)
    assert (data["old"], data["new"], data["added"]) == (OLD.hash, NEW.hash, ["3"])
    assert data["changed"] == [{"id": "1", "fields": ["expected"], "is_run_again": True}]


def test_the_same_cases_in_another_order_and_format_are_no_difference(
    kantan_agents: Invoke, tmp_path: Path
) -> None:
    Dataset("a", NEW.cases).save(tmp_path / "a.jsonl")
    Dataset("b", NEW.cases[::-1]).save(tmp_path / "b.csv")
    outcome = kantan_agents("eval", "diff", str(tmp_path / "a.jsonl"), str(tmp_path / "b.csv"))
    assert (outcome.code, outcome.stdout) == (0, "0 added, 0 removed, 0 changed, 2 the same\n")
    outcome = kantan_agents("eval", "diff", str(tmp_path / "a.jsonl"), str(tmp_path / "missing.jsonl"))
    assert outcome.code == 2 and "[E100]" in outcome.stderr
