"""``kantan-agents eval list`` and ``eval show``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kantan_agents import record_traces
from tests.cli.conftest import Invoke
from tests.cli.evaluated_shop import Shop, orders


def words_of(text: str) -> str:
    """Return a text whose line breaks do not matter."""
    return " ".join(text.split())


@pytest.fixture
def empty(tmp_path: Path) -> str:
    """Return the path of a trace database without evaluations."""
    path = tmp_path / "empty.sqlite3"
    record_traces(path).shutdown()
    return str(path)


def test_evaluations_are_listed_the_newest_first(kantan_agents: Invoke, evaluated: Shop) -> None:
    orders(2).save("two.jsonl")
    agent = f"{evaluated.module}:agent"
    kantan_agents("eval", "run", "two.jsonl", "--db", str(evaluated.db), "--agent", agent, "--name", "two")
    data = json.loads(kantan_agents(*evaluated.read("list", "--json")).stdout)
    assert [(one["name"], one["cases"], one["finished"], one["failed"]) for one in data] == [
        ("two", 2, 2, 0),
        ("orders", 12, 24, 0),
    ]
    assert data[1]["variants"] == ["v1", "v2"]
    shown = words_of(kantan_agents(*evaluated.read("list", "--limit", "1")).stdout)
    assert "two" in shown and "2/2" in shown and "orders" not in shown.replace("orders.jsonl", "")


def test_an_empty_database_has_no_evaluations(kantan_agents: Invoke, empty: str) -> None:
    outcome = kantan_agents("eval", "list", "--db", empty)
    assert (outcome.code, outcome.stdout) == (0, "The database holds no evaluations.\n")
    assert json.loads(kantan_agents("eval", "list", "--db", empty, "--json").stdout) == []


def test_only_results_of_the_present_cases_and_prompts_are_counted(
    kantan_agents: Invoke, evaluated: Shop
) -> None:
    Path("kind.md").write_text("Answer very kindly.")
    orders(3).save("orders.jsonl")
    kantan_agents(*evaluated.run("--name", "orders", "--quiet"))
    (data,) = json.loads(kantan_agents(*evaluated.read("list", "--json")).stdout)
    assert (data["cases"], data["planned"], data["finished"]) == (3, 6, 6)


def test_runs_are_shown_with_their_scores_comments_and_traces(kantan_agents: Invoke, evaluated: Shop) -> None:
    outcome = kantan_agents(*evaluated.read("show", "orders", "--limit", "3"))
    assert (outcome.code, outcome.stderr) == (0, "")
    shown = words_of(outcome.stdout)
    assert "v1 0.333 (12) 0 180" in shown
    assert "o1 v1 0 kind: missing: 'please'" in shown
    assert "21 more with --limit 24" in shown
    data = json.loads(kantan_agents(*evaluated.read("show", "LAST", "--json", "--limit", "1")).stdout)
    (result,) = data["results"]
    trace = kantan_agents("traces", "show", result["trace_id"], "--db", str(evaluated.db))
    assert (trace.code, "order 0: please wait" in trace.stdout) == (0, True)
    assert result["trace_id"][-8:] in outcome.stdout


def test_failing_runs_and_the_worst_of_a_metric_are_shown_alone(
    kantan_agents: Invoke, evaluated: Shop
) -> None:
    data = json.loads(kantan_agents(*evaluated.read("show", "orders", "--failed", "--json")).stdout)
    assert {one["variant"] for one in data["results"]} == {"v1"}
    assert len(data["results"]) == 8
    more = evaluated.run(
        "--evaluator", f"{evaluated.module}:length", "--evaluator", "latency", "--name", "orders"
    )
    kantan_agents(*more, "--quiet")
    for metric, sign in (("length", 1), ("latency", -1)):
        arguments = evaluated.read("show", "orders", "--metric", metric, "--json", "--limit", "30")
        data = json.loads(kantan_agents(*arguments).stdout)
        values = [sign * one["scores"][metric]["value"] for one in data["results"]]
        assert len(values) == 24
        assert values == sorted(values)


def test_failed_scores_are_failing_runs(kantan_agents: Invoke, evaluated: Shop) -> None:
    more = evaluated.run("--evaluator", f"{evaluated.module}:broken", "--name", "orders", "--quiet")
    kantan_agents(*more)
    outcome = kantan_agents(
        *evaluated.read("show", "orders", "--failed", "--metric", "broken", "--limit", "2")
    )
    assert "failed broken: KeyError: 'nothing'" in words_of(outcome.stdout)
    assert "22 more" in outcome.stdout


def test_nothing_to_show_is_said(kantan_agents: Invoke, evaluated_shop: Shop) -> None:
    agent = f"{evaluated_shop.module}:agent"
    arguments = [
        "eval",
        "run",
        "orders.jsonl",
        "--db",
        str(evaluated_shop.db),
        "--agent",
        agent,
        "--name",
        "o",
    ]
    kantan_agents(*arguments)
    outcome = kantan_agents(*evaluated_shop.read("show", "o", "--failed"))
    assert (outcome.code, outcome.stdout.endswith("No run to show.\n")) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["order"], "[E104] No evaluation 'order': did you mean 'orders'?"),
        (
            ["orders", "--metric", "kin"],
            "[E75] Invalid option --metric: 'orders' has no 'kin'; did you mean 'kind'",
        ),
    ],
)
def test_an_unknown_name_is_one_line(
    kantan_agents: Invoke, evaluated: Shop, arguments: list[str], text: str
) -> None:
    outcome = kantan_agents(*evaluated.read("show", *arguments))
    assert (outcome.code, outcome.stdout) == (2, "")
    assert text in outcome.stderr
    assert outcome.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["LAST", "orders"])
def test_nothing_in_the_database_is_one_line(kantan_agents: Invoke, empty: str, name: str) -> None:
    outcome = kantan_agents("eval", "show", name, "--db", empty)
    assert (outcome.code, outcome.stdout) == (2, "")
    assert f"[E104] No evaluation '{name}'" in outcome.stderr


@pytest.mark.parametrize("command", [["list"], ["show", "x"], ["compare", "a", "b"]])
def test_a_missing_database_is_one_line(kantan_agents: Invoke, tmp_path: Path, command: list[str]) -> None:
    outcome = kantan_agents("eval", *command, "--db", str(tmp_path / "none.db"))
    assert (outcome.code, outcome.stdout) == (2, "")
    assert "[E60]" in outcome.stderr
    assert outcome.stderr.count("\n") == 1
