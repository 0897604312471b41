"""``kantan-agents eval compare``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from kantan_agents.cli.eval.conditions import check_conditions, read_conditions
from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab import Case, Comparison, Dataset, compare
from kantan_agents.testing import Reply
from tests.cli.conftest import Invoke
from tests.cli.evaluated_shop import Shop, orders, reply, shop_in
from tests.lab.evaluation.comparing.scores import results


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
    assert "better on kind by 0.67 (0.21 to 0.94, p 0.0" in shown
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


def crashing(request: Any) -> Any:
    """Answer as the shop does, but fail for the prompt of v2, apart from the first order."""
    is_new = "kindly" in str(request.system_instructions)
    is_first = request.input[-1]["content"] == "order 0"
    return Reply("no", status=400) if is_new and not is_first else reply(request)


@pytest.fixture
def crashed(kantan_agents: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """Return a shop whose v2 has failed on all but one case."""
    with shop_in(tmp_path, monkeypatch, crashing) as shop:
        assert kantan_agents(*shop.run("--name", "orders", "--quiet", "--max-failed", "100%")).code == 0
        yield shop


def test_a_version_that_crashes_fails_each_condition(kantan_agents: Invoke, crashed: Shop) -> None:
    for condition, why in (
        ("worse:failed", "v2 worse on failed"),
        ("not-better:kind", "11 runs of v2 without a score count as 0"),
        ("worse:tokens", "tokens: 11 failed runs of v2, 0 of v1, and it is that of finished runs only"),
    ):
        metric = condition.partition(":")[2]
        outcome = kantan_agents(
            *crashed.read("compare", "v1", "v2", "--metric", metric, "--fail-if", condition)
        )
        assert (outcome.code, f"failed {condition}: " in outcome.stderr) == (1, True)
        assert why in outcome.stderr
    ignored = ("--missing", "ignore", "--metric", "kind", "--fail-if", "worse:kind")
    outcome = kantan_agents(*crashed.read("compare", "v1", "v2", *ignored))
    assert (outcome.code, "with 1 independent case it can never be met; it needs 6" in outcome.stderr) == (
        2,
        True,
    )


def test_a_condition_that_five_cases_cannot_meet_is_an_error(
    kantan_agents: Invoke, evaluated_shop: Shop
) -> None:
    for count, more, code in (
        (5, ["--metric", "kind"], 2),
        (6, ["--metric", "kind"], 0),
        (6, ["--metric", "kind", "--metric", "failed", "--metric", "latency"], 2),
        (7, ["--metric", "kind", "--metric", "failed", "--metric", "latency"], 0),
    ):
        orders(count).save("orders.jsonl")
        assert kantan_agents(*evaluated_shop.run("--name", f"with {count}", "--quiet")).code == 0
        outcome = kantan_agents(*evaluated_shop.read("compare", "v1", "v2", *more, "--fail-if", "worse:kind"))
        assert outcome.code == code, outcome.stderr
        assert ("with 5 independent cases it can never be met; it needs 6" in outcome.stderr) == (count == 5)


@pytest.mark.parametrize("value", [0.0, 0.4, -3.0])
@pytest.mark.parametrize("metrics", [["help"], ["help", "failed", "latency", "tokens"]])
def test_a_condition_is_met_by_the_number_of_cases_that_it_names(value: float, metrics: list[str]) -> None:
    (condition,) = read_conditions(["worse:help"])

    def compared(count: int) -> Comparison:
        return compare(results([1.0] * count), results([value] * count, "v2"), metrics=metrics)

    with pytest.raises(InvalidOptionError, match="it needs 6"):
        check_conditions([condition], [compared(5)])
    check_conditions([condition], [compared(6)])
    assert condition.why_met(compared(6))


@pytest.mark.parametrize(("metric", "needed"), [("help", 10), ("latency", 12)])
def test_at_any_look_it_takes_more_cases_of_a_metric_without_bounds(metric: str, needed: int) -> None:
    (condition,) = read_conditions([f"worse:{metric}"])

    def compared(count: int) -> Comparison:
        sides = (results([1.0] * count), results([0.0] * count, "v2", seconds=2.0))
        return compare(*sides, metrics=metric, looks="any")

    with pytest.raises(InvalidOptionError, match=f"it needs {needed}"):
        check_conditions([condition], [compared(needed - 1)])
    assert f"a verdict takes at least {needed} independent" in compared(needed - 1)[metric].text
    check_conditions([condition], [compared(needed)])
    assert condition.why_met(compared(needed))


def test_versions_of_an_evaluator_that_differ_can_meet_no_condition() -> None:
    (condition,) = read_conditions(["worse:help"])
    sides = [
        attrs.evolve(
            side,
            results=tuple(attrs.evolve(one, evaluators={"help": ("help", version)}) for one in side.results),
        )
        for side, version in ((results([1.0] * 9), "1"), (results([0.0] * 9, "v2"), "2"))
    ]
    with pytest.raises(InvalidOptionError, match="no verdict on v2 is possible: the scores are of different"):
        check_conditions([condition], [compare(*sides)])


def test_what_becomes_of_missing_scores_is_one_of_two(kantan_agents: Invoke, evaluated: Shop) -> None:
    outcome = kantan_agents(*evaluated.read("compare", "v1", "v2", "--missing", "zero"))
    assert (outcome.code, "Invalid option --missing: must be 'worst' or 'ignore'" in outcome.stderr) == (
        2,
        True,
    )


def test_a_metric_without_any_score_meets_every_condition(kantan_agents: Invoke, evaluated: Shop) -> None:
    more = evaluated.run("--evaluator", f"{evaluated.module}:broken", "--name", "orders", "--quiet")
    assert kantan_agents(*more).code == 0
    outcome = kantan_agents(*evaluated.read("compare", "v1", "v2", "--fail-if", "worse:broken"))
    assert outcome.code == 1
    assert (
        "failed worse:broken: nothing was checked: broken: cannot tell, no case has a score on both sides"
        in outcome.stderr
    )


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
    assert "cases 4 " in shown
    assert "12 cases of one of them only left out" in shown
    alone = evaluated.run("--name", "alone", "--quiet")
    place = alone.index("--variant")
    assert kantan_agents(*alone[:place], *alone[place + 2 :]).code == 0
    said = kantan_agents(*evaluated.read("compare", "v1", "v2")).stderr
    assert "'alone' has no such variant; that of 'later: v1, v2' is 'later: v1, v2:v2'" in said
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
