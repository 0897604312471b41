"""``--csv``, ``--markdown`` and ``--junit``."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.cli.conftest import Invoke
from tests.cli.evaluated_shop import Shop
from tests.cli.test_rollout import db

__all__ = ["db"]


def table(text: str) -> list[dict[str, str]]:
    """Return the rows of CSV."""
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_runs_are_csv_with_the_names_of_json(kantan_agents: Invoke, evaluated: Shop) -> None:
    rows = table(kantan_agents(*evaluated.read("show", "orders", "--csv")).stdout)
    assert len(rows) == 24
    assert (rows[0]["case_id"], rows[0]["variant"], rows[0]["scores.kind.value"]) == ("o0", "v1", "1.0")
    few = table(kantan_agents(*evaluated.read("show", "orders", "--csv", "--failed", "--limit", "3")).stdout)
    assert [one["scores.kind.value"] for one in few] == ["0.0"] * 3


def test_a_comparison_is_csv_and_markdown(kantan_agents: Invoke, evaluated: Shop) -> None:
    rows = {
        one["metric"]: one
        for one in table(kantan_agents(*evaluated.read("compare", "v1", "v2", "--csv")).stdout)
    }
    assert (rows["kind"]["verdict"], rows["kind"]["mean_b"]) == ("better", "1.0")
    text = kantan_agents(*evaluated.read("compare", "v1", "v2", "--markdown", "--metric", "kind")).stdout
    lines = text.splitlines()
    assert lines[0] == "**v2 against v1: better on kind**"
    assert lines[2].startswith("| metric | v1 | v2 | difference |")
    assert lines[4].startswith("| kind | 0.333 | 1 | +0.67 |")


def test_an_evaluation_is_written_for_continuous_integration(
    kantan_agents: Invoke, evaluated_shop: Shop
) -> None:
    outcome = kantan_agents(*evaluated_shop.run("--markdown", "--junit", "junit.xml"))
    assert outcome.code == 0, outcome.stderr
    assert "better on kind" in outcome.stdout.partition("\n")[0]  # and worse on latency, on a busy machine
    assert "**orders: v1, v2: 24 of 24 runs made, 0 failed**" in outcome.stdout
    suites = {one.get("name"): one for one in ET.parse("junit.xml").getroot()}
    assert [(name, one.get("tests"), one.get("failures")) for name, one in suites.items()] == [
        ("v1", "12", "8"),
        ("v2", "12", "0"),
    ]
    assert kantan_agents(*evaluated_shop.run("--csv", "--quiet", "--junit", "junit.xml")).code == 0
    shown = kantan_agents(*evaluated_shop.read("show", "LAST", "--markdown")).stdout
    assert shown in outcome.stdout


def test_a_file_that_must_not_be_written_is_refused_before_the_runs(
    kantan_agents: Invoke, evaluated_shop: Shop
) -> None:
    before = Path("orders.jsonl").read_bytes()
    for file, reason in (
        ("orders.jsonl", "it is the dataset"),
        ("none/x.xml", "its directory does not exist"),
        (".", "it is not a regular file"),
    ):
        outcome = kantan_agents(*evaluated_shop.run("--junit", file))
        assert (outcome.code, reason in outcome.stderr) == (2, True)
    assert evaluated_shop.server.requests == []
    assert Path("orders.jsonl").read_bytes() == before


def test_the_status_of_a_rollout_is_csv_and_markdown(kantan_agents: Invoke, db: str) -> None:
    rows = table(kantan_agents("rollout", "status", "support", "--csv", "--db", db).stdout)
    assert [(one["name"], one["rollout"]) for one in rows] == [
        ("v1", "support:v1-v2"),
        ("v2", "support:v1-v2"),
    ]
    assert rows[1]["guards.error.has_fired"] == "False"
    text = kantan_agents("rollout", "status", "support", "--markdown", "--db", db).stdout
    assert text.startswith("**continue**: ")
    assert "| guard | arm | limit | p | result |" in text
    outcome = kantan_agents("rollout", "status", "--csv", "--db", db)
    assert (outcome.code, "--csv: needs the NAME of a rollout" in outcome.stderr) == (2, True)


def test_one_form_is_chosen(kantan_agents: Invoke) -> None:
    outcome = kantan_agents("eval", "show", "orders", "--json", "--csv")
    assert (outcome.code, "choose one of --json, --csv and --markdown" in outcome.stderr) == (2, True)
