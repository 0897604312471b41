"""``kantan-agents eval compare`` and ``report`` with other numbers of variants than two, and for any look."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from kantan_agents import TraceStore
from kantan_agents.cli.eval.conditions import check_conditions, read_conditions
from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab import Case, Comparison, Dataset, compare_all
from kantan_agents.lab.evaluation.comparing.number_texts import interval_text
from kantan_agents.page.data.comparisons import compared_variants
from tests.cli.conftest import Invoke
from tests.cli.evaluated_shop import Shop
from tests.cli.test_eval_compare import words_of
from tests.lab.evaluation.comparing.scores import results


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "150")


@pytest.fixture
def three(kantan_agents: Invoke, evaluated: Shop) -> Shop:
    """The evaluation of the shop with a third variant, which is as the first."""
    Path("same.md").write_text("Answer, please.\n")
    outcome = kantan_agents(*evaluated.run("--variant", "v3=same.md", "--name", "orders"))
    assert outcome.code == 0
    assert "better on kind by 0.67" in words_of(outcome.stdout)
    assert "v3 on kind: cannot tell, no case differs" in words_of(outcome.stdout)
    return evaluated


def test_without_names_all_variants_are_compared_with_the_first(kantan_agents: Invoke, three: Shop) -> None:
    outcome = kantan_agents(*three.read("compare", "--metric", "kind"))
    assert (outcome.code, outcome.stderr) == (0, "")
    shown = words_of(outcome.stdout)
    assert "control v1 (orders) variants v2 (orders), v3 (orders) cases 12" in shown
    assert "v2 kind 0.333 1 +0.67 +0.21 to +0.94 0.008 8/4/0 better" in shown
    assert "Holm" not in shown and "each interval holds on its own; the verdicts hold for" in shown


def test_one_name_is_the_control_of_all_others(kantan_agents: Invoke, three: Shop) -> None:
    data = json.loads(kantan_agents(*three.read("compare", "v2", "--json")).stdout)
    assert [(one["a"], one["b"]) for one in data["comparisons"]] == [("v2", "v1"), ("v2", "v3")]
    assert data["evaluations"] == ["orders"] * 3
    assert {one["change"] for one in data["changed_cases"]["v1"] if one["metric"] == "kind"} == {"worse"}


def test_a_condition_fails_if_any_variant_meets_it(kantan_agents: Invoke, three: Shop) -> None:
    outcome = kantan_agents(*three.read("compare", "v2", "v1", "v3", "--fail-if", "worse:kind"))
    assert outcome.code == 1
    assert [line.partition(" by ")[0] for line in outcome.stderr.splitlines()] == [
        "failed worse:kind with v1: v1 worse on kind",
        "failed worse:kind with v3: v3 worse on kind",
    ]
    outcome = kantan_agents(*three.read("compare", "--fail-if", "worse:kin"))
    assert (outcome.code, outcome.stdout) == (2, "")


def test_a_pair_of_several_says_that_there_are_more(kantan_agents: Invoke, three: Shop) -> None:
    shown = words_of(kantan_agents(*three.read("compare", "v1", "v2")).stdout)
    assert "orders has 1 more variant; `eval compare` without B adjusts for all" in shown


def test_two_variants_need_no_names(kantan_agents: Invoke, evaluated: Shop) -> None:
    shown = words_of(kantan_agents(*evaluated.read("compare")).stdout)
    assert "a v1 (orders) b v2 (orders) cases 12" in shown
    assert 'the verdicts hold for one look; to add cases and look again, compare with looks "any"' in shown
    assert "more variant" not in shown


def test_the_report_of_all_has_the_verdicts_of_each(kantan_agents: Invoke, three: Shop) -> None:
    outcome = kantan_agents(*three.read("report", "-o", "report.html"))
    assert (outcome.code, outcome.stderr) == (0, "12 cases written to report.html\n")
    page = Path("report.html").read_text(encoding="utf-8")
    assert "better on kind by 0.67" in page
    assert "v3 on kind: cannot tell, no case differs" in page
    assert "order 1: please wait" in page


def test_cases_that_are_added_make_the_verdicts_hold_at_any_look(
    kantan_agents: Invoke, evaluated: Shop
) -> None:
    Dataset("orders", [Case(f"order {number}", id=f"o{number}") for number in range(40)]).save("orders.jsonl")
    shown = words_of(kantan_agents(*evaluated.run("--name", "orders")).stdout)
    assert "the verdicts hold at any look: you may add cases and look again" in shown
    assert "better on kind by 0.65" in shown
    data = json.loads(kantan_agents(*evaluated.read("compare", "v1", "v2", "--json")).stdout)
    assert (data["looks"], data["is_grown"], data["is_order_known"]) == ("any", True, True)
    once = json.loads(kantan_agents(*evaluated.read("compare", "--looks", "one", "--json")).stdout)
    assert (once["looks"], once["is_grown"]) == ("one", True)
    kantan_agents(*evaluated.read("report", "v1", "v2", "--looks", "any", "-o", "report.html"))
    assert "The verdicts hold at any look" in Path("report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["v1", "v2", "--looks", "ten"], '[E75] Invalid option --looks: must be "one" or "any", not \'ten\''),
        (["v1", "v2", "v1"], "'v1 of orders' is given twice"),
        (["v3"], "[E104]"),
    ],
)
def test_bad_input_is_one_line(
    kantan_agents: Invoke, evaluated: Shop, arguments: list[str], text: str
) -> None:
    outcome = kantan_agents(*evaluated.read("compare", *arguments))
    assert (outcome.code, outcome.stdout) == (2, "")
    assert text in outcome.stderr
    assert outcome.stderr.count("\n") == 1


def test_an_evaluation_with_one_variant_needs_another(kantan_agents: Invoke, evaluated: Shop) -> None:
    agent = f"{evaluated.module}:agent"
    alone = ["eval", "run", "orders.jsonl", "--db", str(evaluated.db), "--agent", agent, "--name", "alone"]
    assert kantan_agents(*alone).code == 0
    outcome = kantan_agents(*evaluated.read("compare"))
    assert outcome.code == 2
    assert "[E75] Invalid option B: 'alone' has one variant only; name another one" in outcome.stderr


def test_a_condition_needs_cases_for_all_variants_together_and_at_any_look_more() -> None:
    (condition,) = read_conditions(["worse:help"])

    def compared(count: int, **options: Any) -> tuple[Comparison, ...]:
        worse = [results([0.0] * count, name) for name in ("v2", "v3", "v4")]
        return compare_all(results([1.0] * count), *worse, metrics="help", **options).comparisons

    for options, needed in (({}, 7), ({"looks": "any"}, 12)):
        with pytest.raises(InvalidOptionError, match=f"it needs {needed}"):
            check_conditions([condition], compared(needed - 1, **options))
        comparisons = compared(needed, **options)
        check_conditions([condition], comparisons)
        assert all(condition.why_met(one) for one in comparisons)


def test_several_variants_are_printed_as_csv_and_markdown(kantan_agents: Invoke, three: Shop) -> None:
    rows = list(csv.DictReader(kantan_agents(*three.read("compare", "--csv")).stdout.splitlines()))
    assert [(one["b"], one["verdict"]) for one in rows if one["metric"] == "kind"] == [
        ("v2", "better"),
        ("v3", "cannot tell"),
    ]
    markdown = kantan_agents(*three.read("compare", "--markdown")).stdout
    assert "better on kind" in markdown.partition("\n")[0]
    assert "\n**v3 against v1: " in markdown


def test_the_command_line_the_report_and_the_page_show_one_interval(
    kantan_agents: Invoke, evaluated_shop: Shop
) -> None:
    """Of cases that are conversations of unequal length."""
    talks = [number // 3 if number % 2 else number for number in range(24)]
    cases = [Case(f"order {number}", conversation=f"talk {talk}") for number, talk in enumerate(talks)]
    Dataset("orders", cases).save("orders.jsonl")
    Path("v3.md").write_text("Answer.\n")
    kantan_agents(*evaluated_shop.run("--name", "talks", "--quiet", "--variant", "v3=v3.md"))

    def read(command: str, *more: str) -> Any:
        outcome = kantan_agents(*evaluated_shop.read(command, *more))
        return json.loads(outcome.stdout) if "--json" in more else outcome

    for options in ((), ("--looks", "any")):
        together = read("compare", "v1", "v2", "v3", "--json", *options)["comparisons"][0]["metrics"][0]
        alone = read("compare", "v1", "v2", "--json", *options)["metrics"][0]
        assert alone["independent"] < alone["cases"] == 24
        interval = (alone["low"], alone["high"])
        assert None not in interval and interval == (together["low"], together["high"])
        read("report", "v1", "v2", "-o", "report.html", "--force", *options)
        assert interval_text(*interval) in Path("report.html").read_text()
    page = compared_variants(TraceStore(evaluated_shop.db), "talks", "v1", "v2")["metrics"][0]
    once = read("compare", "v1", "v2", "--json")
    assert page["metric"] == "kind"
    assert [page["low"], page["high"]] == [once["metrics"][0][bound] for bound in ("low", "high")]


def test_a_run_may_say_that_one_will_look_again(kantan_agents: Invoke, evaluated_shop: Shop) -> None:
    command = evaluated_shop.run("--json", "--looks", "any")
    assert json.loads(kantan_agents(*command).stdout)["comparison"]["looks"] == "any"
    refused = kantan_agents(*evaluated_shop.run("--looks", "ten", "--name", "none"))
    assert refused.code == 2
    assert '[E75] Invalid option --looks: must be "one" or "any", not \'ten\'' in refused.stderr
    assert "none" not in kantan_agents(*evaluated_shop.read("list")).stdout
