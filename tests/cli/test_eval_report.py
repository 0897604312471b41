"""``kantan-agents eval report``."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Invoke
from tests.cli.evaluated_shop import Shop


def test_the_page_has_the_verdicts_and_the_cases_with_their_inputs(
    kantan_agents: Invoke, evaluated: Shop
) -> None:
    outcome = kantan_agents(*evaluated.read("report", "v1", "v2", "-o", "report.html"))
    assert (outcome.code, outcome.stdout) == (0, "")
    assert outcome.stderr == "12 cases written to report.html\n"
    page = Path("report.html").read_text(encoding="utf-8")
    assert "better on kind by 0.67" in page
    assert "order 1: please wait" in page
    assert page.count("<dt>input</dt>") == 8
    assert page.count("kantan-agents traces show trace_") == 16
    assert [path.name for path in Path().iterdir() if path.name.startswith(".")] == []


def test_as_json_it_has_the_path_the_size_and_the_metrics(kantan_agents: Invoke, evaluated: Shop) -> None:
    arguments = evaluated.read("report", "v1", "v2", "-o", "report.html", "--metric", "kind", "--json")
    outcome = kantan_agents(*arguments)
    assert (outcome.code, outcome.stderr) == (0, "")
    data = json.loads(outcome.stdout)
    assert (data.pop("path"), data.pop("size")) == ("report.html", Path("report.html").stat().st_size)
    assert data == {"cases": 12, "metrics": ["kind"]}


def test_the_same_results_give_the_same_page(kantan_agents: Invoke, evaluated: Shop) -> None:
    for name in ("one.html", "two.html"):
        assert kantan_agents(*evaluated.read("report", "v1", "v2", "-o", name)).code == 0
    assert Path("one.html").read_bytes() == Path("two.html").read_bytes()


def test_only_the_chosen_metrics_are_in_it(kantan_agents: Invoke, evaluated: Shop) -> None:
    kantan_agents(*evaluated.read("report", "v1", "v2", "-o", "report.html", "--metric", "kind"))
    page = Path("report.html").read_text(encoding="utf-8")
    assert "latency" not in page


def test_an_existing_file_is_replaced_only_if_asked_for(kantan_agents: Invoke, evaluated: Shop) -> None:
    Path("report.html").write_text("mine")
    outcome = kantan_agents(*evaluated.read("report", "v1", "v2", "-o", "report.html"))
    assert (outcome.code, Path("report.html").read_text()) == (2, "mine")
    assert "[E79] Cannot use report.html: it exists already; --force replaces it" in outcome.stderr
    assert kantan_agents(*evaluated.read("report", "v1", "v2", "-o", "report.html", "--force")).code == 0
    assert Path("report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_a_new_file_is_for_its_owner_only(kantan_agents: Invoke, evaluated: Shop) -> None:
    kantan_agents(*evaluated.read("report", "v1", "v2", "-o", "report.html"))
    assert stat.S_IMODE(Path("report.html").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["v1", "v9", "-o", "report.html"], "[E104]"),
        (["v1", "v2", "-o", "missing/report.html"], "[E79] Cannot use missing/report.html: its directory"),
        (
            ["v1", "v2", "-o", "eval.sqlite3", "--force"],
            "[E79] Cannot use eval.sqlite3: it is the trace database",
        ),
        (["v1", "v2", "-o", "report.html", "--metric", "x"], "[E75] Invalid option --metric"),
        (["v1", "v2"], "Missing option"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    kantan_agents: Invoke, evaluated: Shop, arguments: list[str], text: str
) -> None:
    outcome = kantan_agents(*evaluated.read("report", *arguments))
    assert (outcome.code, outcome.stdout) == (2, "")
    assert text in outcome.stderr
    assert outcome.stderr.count("\n") == 1
    assert not Path("report.html").exists()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_a_directory_that_cannot_be_written_is_one_line(
    kantan_agents: Invoke, evaluated: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The tests may run as root, who may write anywhere.
    def refuse(*_: Any) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("kantan_agents.support.replace_file.open_private", refuse)
    outcome = kantan_agents(*evaluated.read("report", "v1", "v2", "-o", "report.html"))
    assert (outcome.code, outcome.stdout) == (2, "")
    assert "[E79]" in outcome.stderr and "report.html: Permission denied" in outcome.stderr
    assert outcome.stderr.count("\n") == 1
