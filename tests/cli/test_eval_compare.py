"""``kantan-agents eval compare``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kantan_agents.lab import Case, Dataset
from tests.cli.conftest import Invoke
from tests.cli.evaluated_shop import Shop


def words_of(text: str) -> str:
    """Return a text whose line breaks do not matter."""
    return " ".join(text.split())


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "140")


def test_the_table_the_verdicts_and_the_flipped_cases_are_shown(
    kantan_agents: Invoke, evaluated: Shop
) -> None:
    outcome = kantan_agents(*evaluated.read("compare", "v1", "v2"))
    assert (outcome.code, outcome.stderr) == (0, "")
    shown = words_of(outcome.stdout)
    assert "a v1 (orders) b v2 (orders) cases 12" in shown
    assert "kind 0.333 1 +0.67 +0.21 to +0.94" in shown
    assert "8/4/0 better" in shown
    assert "Verdict v2 better on kind by 0.67 (0.21 to 0.94, p 0.0" in shown
    assert "Cases that flipped: kind better: o1, 0 (" in shown
    assert "and 3 more, see `eval report`" in shown


def test_the_other_way_round_it_is_worse(kantan_agents: Invoke, evaluated: Shop) -> None:
    shown = words_of(kantan_agents(*evaluated.read("compare", "v2", "v1", "--metric", "kind")).stdout)
    assert "v1 worse on kind by 0.67" in shown
    assert "worse: o1, 1 (" in shown
    assert "latency" not in shown


def test_as_json_it_has_the_traces_of_the_changed_cases(kantan_agents: Invoke, evaluated: Shop) -> None:
    data = json.loads(kantan_agents(*evaluated.read("compare", "v1", "v2", "--json")).stdout)
    assert data["evaluations"] == ["orders", "orders"]
    first = data["changed_cases"][0]
    assert (first["metric"], first["case"], first["change"]) == ("kind", "o1", "better")
    (trace_id,) = first["b"]["trace_ids"]
    assert kantan_agents("traces", "show", trace_id, "--db", str(evaluated.db)).code == 0


@pytest.mark.parametrize(
    ("names", "conditions", "met"),
    [
        (("v1", "v2"), ["worse:kind"], []),
        (("v1", "v2"), ["not-better:kind"], []),
        (("v2", "v1"), ["worse:kind"], ["failed worse:kind: v1 worse on kind by 0.67"]),
        (("v2", "v1"), ["not-better:kind"], ["failed not-better:kind: v1 worse on kind by 0.67"]),
        (("v1", "v2"), ["worse:tokens"], []),
        (
            ("v1", "v2"),
            ["not-better:tokens"],
            ["failed not-better:tokens: tokens: cannot tell, no case differs"],
        ),
        (
            ("v2", "v1"),
            ["worse:kind", "worse:failed", "not-better:failed"],
            ["failed worse:kind: ", "failed not-better:failed: "],
        ),
    ],
)
def test_a_condition_that_is_met_is_exit_code_1_and_a_line_that_says_why(
    kantan_agents: Invoke, evaluated: Shop, names: tuple[str, str], conditions: list[str], met: list[str]
) -> None:
    options = [part for one in conditions for part in ("--fail-if", one)]
    outcome = kantan_agents(*evaluated.read("compare", *names, *options))
    assert outcome.code == (1 if met else 0)
    lines = outcome.stderr.splitlines()
    assert len(lines) == len(met)
    for line, beginning in zip(lines, met, strict=True):
        assert line.startswith(beginning)


def test_a_metric_without_any_score_meets_every_condition(kantan_agents: Invoke, evaluated: Shop) -> None:
    more = evaluated.run("--evaluator", f"{evaluated.module}:broken", "--name", "orders", "--quiet")
    assert kantan_agents(*more).code == 0
    outcome = kantan_agents(*evaluated.read("compare", "v1", "v2", "--fail-if", "worse:broken"))
    assert outcome.code == 1
    assert "failed worse:broken: broken: cannot tell, no case has a score on both sides" in outcome.stderr


def test_variants_of_two_evaluations_are_compared_on_the_cases_of_both(
    kantan_agents: Invoke, evaluated: Shop
) -> None:
    cases = [Case(f"order {number}", id=f"o{number}") for number in range(8, 16)]
    Dataset("later", cases).save("later.jsonl")
    later = evaluated.run("--name", "later: v1, v2", "--quiet")
    later[later.index("orders.jsonl")] = "later.jsonl"
    assert kantan_agents(*later).code == 0
    data = json.loads(
        kantan_agents(*evaluated.read("compare", "orders:v1", "later: v1, v2:v2", "--json")).stdout
    )
    assert data["evaluations"] == ["orders", "later: v1, v2"]
    assert (data["cases"], len(data["unpaired"])) == (4, 12)
    shown = words_of(kantan_agents(*evaluated.read("compare", "orders:v1", "v1")).stdout)
    assert "cases 4; 12 cases of one of them only are left out" in shown
    data = json.loads(
        kantan_agents(*evaluated.read("compare", "v1", "v2", "--evaluation", "orders", "--json")).stdout
    )
    assert (data["evaluations"], data["cases"]) == (["orders", "orders"], 12)


def test_a_variant_against_itself_says_nothing(kantan_agents: Invoke, evaluated: Shop) -> None:
    shown = words_of(kantan_agents(*evaluated.read("compare", "v1", "v1", "--metric", "kind")).stdout)
    assert "kind: cannot tell, no case differs" in shown
    assert "flipped" not in shown


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["v1", "v3"], "[E104] No evaluation 'v3': 'orders' has no such variant; it has 'v1', 'v2'"),
        (["v1", "v22"], "'orders' has no such variant; did you mean 'v2'?"),
        (
            ["v1", "orders:v9"],
            "[E104] No evaluation 'orders:v9': 'orders' has no variant 'v9'; it has 'v1', 'v2'",
        ),
        (["v1", "v2", "--evaluation", "ordres"], "[E104] No evaluation 'ordres': did you mean 'orders'?"),
        (
            ["v1", "v2", "--metric", "kin"],
            "[E75] Invalid option --metric: there is no 'kin'; did you mean 'kind'?",
        ),
        (["v1", "v2", "--fail-if", "kind"], "[E75] Invalid option --fail-if: must be worse:METRIC or"),
        (["v1", "v2", "--fail-if", "worse:"], "[E75] Invalid option --fail-if"),
        (["v1", "v2", "--fail-if", "better:kind"], "[E75] Invalid option --fail-if"),
        (
            ["v1", "v2", "--fail-if", "worse:kin"],
            "worse:kin: this metric is not compared; did you mean 'kind'",
        ),
        (
            ["v1", "v2", "--metric", "kind", "--fail-if", "worse:tokens"],
            "worse:tokens: this metric is not compared; there are kind",
        ),
    ],
)
def test_bad_input_is_one_line(
    kantan_agents: Invoke, evaluated: Shop, arguments: list[str], text: str
) -> None:
    outcome = kantan_agents(*evaluated.read("compare", *arguments))
    assert (outcome.code, outcome.stdout) == (2, "")
    assert text in outcome.stderr
    assert outcome.stderr.count("\n") == 1


def test_variants_without_a_common_case_are_one_line(kantan_agents: Invoke, evaluated: Shop) -> None:
    Dataset("others", [Case("order 99", id="o99")]).save(Path("others.jsonl"))
    agent = f"{evaluated.module}:agent"
    others = ["eval", "run", "others.jsonl", "--db", str(evaluated.db), "--agent", agent, "--name", "others"]
    assert kantan_agents(*others).code == 0
    outcome = kantan_agents(*evaluated.read("compare", "orders:v1", "others:v1"))
    assert (outcome.code, outcome.stdout) == (2, "")
    assert "[E105]" in outcome.stderr
    assert outcome.stderr.count("\n") == 1
