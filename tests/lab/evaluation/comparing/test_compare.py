"""What ``compare`` says about two variants."""

from __future__ import annotations

import json
import random
from typing import Any

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kantan_agents.errors import InvalidOptionError, NotComparableError
from kantan_agents.lab import MetricComparison, VariantResults, compare
from kantan_agents.lab.evaluation.statistics import detectable_difference, more_cases
from tests.lab.evaluation.comparing.scores import result, results, variant_of

VALUES = st.lists(st.tuples(*[st.sampled_from([0.0, 0.25, 0.3, 0.5, 1.0, 7.5])] * 2), min_size=1, max_size=30)
FEW: dict[str, Any] = {"resamples": 200}


def noise(count: int, seed: int, shift: float = 0.0) -> list[float]:
    drawn = random.Random(seed)
    return [0.5 + shift + drawn.uniform(-0.1, 0.1) for _ in range(count)]


# ---- verdicts


def test_a_variant_that_is_better_on_most_cases_is_better() -> None:
    a, b = results(noise(120, 1)), results(noise(120, 2, shift=0.06), "v2")
    comparison = compare(a, b)
    found = comparison["help"]
    assert found.verdict == "better"
    assert found.low is not None and found.high is not None and found.difference is not None
    assert 0 < found.low < found.difference < found.high
    assert found.p_adjusted is not None and found.p_adjusted < 0.01
    assert len(found.wins) + len(found.ties) + len(found.losses) == found.cases == 120
    assert comparison.text.startswith("v2 better on help by 0.0")
    assert "120 cases" in comparison.text


def test_a_lower_value_is_better_where_the_evaluator_says_so() -> None:
    a, b = results(noise(60, 1), better="lower"), results(noise(60, 2, shift=0.2), "v2", better="lower")
    found = compare(a, b)["help"]
    assert found.verdict == "worse"
    assert found.text.startswith("v2 worse on help by 0.")
    assert len(found.losses) > len(found.wins)


def test_what_chance_explains_is_no_verdict_and_what_could_be_shown_is_said() -> None:
    found = compare(results(noise(30, 1)), results(noise(30, 2), "v2"))["help"]
    assert found.verdict == "cannot tell"
    assert found.low is not None and found.high is not None and found.low < 0 < found.high
    assert found.detectable is not None and found.detectable > 0
    assert found.wanted == 0.05


def test_it_is_said_how_many_more_cases_a_difference_takes() -> None:
    wide = [float(value > 0.5) for value in noise(30, 1)]
    found = compare(results(wide), results(wide[::-1], "v2"))["help"]
    assert found.verdict == "cannot tell"
    assert found.more_cases is not None and found.more_cases > 100
    assert "more cases would show a difference of 0.05" in found.text
    fewer = compare(results(wide), results(wide[::-1], "v2"), wanted={"help": 0.3})["help"]
    assert fewer.more_cases is not None and fewer.more_cases < found.more_cases


def test_yes_or_no_is_compared_by_the_cases_that_changed() -> None:
    a = results([0.0] * 12 + [1.0] * 20)
    b = results([1.0] * 10 + [0.0] * 2 + [1.0] * 20, "v2")
    found = compare(a, b, metrics="help")["help"]
    assert found.is_binary
    assert found.p == pytest.approx(2 / 2**10)  # 10 of 10 changes in one direction
    assert found.verdict == "better"
    assert found.wins == tuple(map(str, range(10)))


def test_every_case_with_the_same_gain_is_better() -> None:
    found = compare(results([0.5] * 20), results([0.6] * 20, "v2"))["help"]
    assert found.verdict == "better"
    assert (found.low, found.high) == (None, None)
    assert "v2 better on help by 0.1 (no interval: all differences are equal, p " in found.text


def test_yes_or_no_on_few_cases_has_an_interval_and_no_width_of_0() -> None:
    found = compare(results([0.0] * 10), results([1.0] * 10, "v2"))
    assert found["help"].verdict == "better"
    assert found["help"].low == pytest.approx(0.47, abs=0.01)
    assert found["failed"].text == "failed: cannot tell, no case differs (-0.27 to 0.27, 10 cases)"
    assert (found["latency"].low, found["latency"].no_interval) == (None, "no case differs")


def test_seconds_that_happen_to_be_0_or_1_are_not_answers() -> None:
    made = [result(str(case), 0.5, variant="v2", seconds=float(case % 3 > 0)) for case in range(9)]
    found = compare(results([0.5] * 9), variant_of(made, "v2"))["latency"]
    assert (found.is_binary, found.no_interval) == (False, "it takes at least 10 independent cases")


def test_scores_of_few_cases_have_a_reason_instead_of_an_interval() -> None:
    found = compare(results(noise(9, 1)), results(noise(9, 2, shift=0.5), "v2"), metrics="help")["help"]
    assert (found.verdict, found.low) == ("better", None)
    assert "(no interval: it takes at least 10 independent cases, p 0.0039, 9 cases)" in found.text


@pytest.mark.parametrize(("seconds", "fewest"), [(1.0, 6), (2.0, 7)])
def test_too_few_cases_for_any_verdict_say_how_many_it_takes(seconds: float, fewest: int) -> None:
    """Metrics that differ count: latency in the second case."""
    metrics = ["help", "failed", "latency"]
    better = results([1.0] * 5, "v2", seconds=seconds)
    found = compare(results([0.0] * 5), better, metrics=metrics)["help"]
    assert (found.verdict, found.fewest, found.more_cases) == ("cannot tell", fewest, None)
    assert found.text.endswith(f"; a verdict takes at least {fewest} independent cases that differ")
    one = compare(results([0.0]), results([1.0], "v2"), metrics=metrics)["help"]
    assert one.text.endswith("judged from it; a verdict takes at least 6 independent cases that differ")


def test_more_cases_allow_for_all_metrics_that_are_compared() -> None:
    a, b = noise(20, 1), noise(20, 2)
    comparison = compare(results(a), results(b, "v2"))
    differences = [after - before for before, after in zip(a, b, strict=True)]
    assert len(comparison.metrics) == 4
    found = comparison["help"]
    assert found.more_cases == more_cases(differences, 0.05, metrics=4)
    assert found.detectable == detectable_difference(differences, metrics=4)


def test_repeats_are_averaged_inside_a_case() -> None:
    a = variant_of([result("1", value, repeat=repeat) for repeat, value in enumerate([0.0, 1.0, 1.0])])
    b = variant_of([result("1", 1.0, variant="v2"), result("2", 1.0, variant="v2")], "v2")
    found = compare(a, b)["help"]
    assert (found.cases, found.mean_b) == (1, 1.0)
    assert found.mean_a == pytest.approx(2 / 3)


def test_cases_of_one_conversation_are_one_observation() -> None:
    drawn = random.Random(3)
    gains = [drawn.uniform(-0.02, 0.06) for _ in range(10)]

    def variant(name: str, factor: float, *, together: bool) -> Any:
        return variant_of(
            [
                result(
                    f"{number}-{turn}",
                    0.5 + factor * gain,
                    variant=name,
                    conversation=str(number) if together else None,
                )
                for number, gain in enumerate(gains)
                for turn in range(20)
            ],
            name,
        )

    alone = compare(variant("v1", 0, together=False), variant("v2", 1, together=False))["help"]
    together = compare(variant("v1", 0, together=True), variant("v2", 1, together=True))["help"]
    assert (alone.independent, together.independent) == (200, 10)
    assert alone.p is not None and together.p is not None and alone.p < together.p
    assert alone.low is not None and together.low is not None and together.low < alone.low


def test_a_p_is_adjusted_for_the_number_of_metrics() -> None:
    gains = noise(20, 5, shift=0.05)
    a = results(noise(20, 1))
    slow = [result(str(case), gain, variant="v2", seconds=0.4 + gain) for case, gain in enumerate(gains)]
    b = variant_of(slow, "v2")
    alone = compare(a, b, metrics="help")["help"]
    among = compare(a, b)["help"]
    assert alone.p == among.p == alone.p_adjusted
    assert alone.p is not None and among.p_adjusted is not None
    assert alone.p < among.p_adjusted


def test_latency_tokens_cost_and_failures_are_compared_too() -> None:
    a = results([0.5] * 10, seconds=1.0, input_tokens=10, cost=0.1)
    b = results([0.5] * 10, "v2", seconds=2.0, input_tokens=5, cost=0.2)
    verdicts = {one.metric: one.verdict for one in compare(a, b)}
    assert verdicts == {
        "help": "cannot tell",
        "failed": "cannot tell",
        "latency": "worse",
        "tokens": "better",
        "cost": "worse",
    }


def test_cases_of_one_side_only_are_left_out_and_named() -> None:
    comparison = compare(results([0.1, 0.2, 0.3]), results([0.1], "v2"))
    assert (comparison.cases, comparison.unpaired) == (1, ("1", "2"))


def test_a_variant_of_two_evaluations_is_compared_by_their_names() -> None:
    a = variant_of(results([0.5]).results, "v1", evaluation="monday")
    b = variant_of(results([0.5]).results, "v1", evaluation="friday")
    comparison = compare(a, b)
    assert (comparison.a, comparison.b) == ("v1 of monday", "v1 of friday")


def test_a_comparison_is_json_data() -> None:
    data = json.loads(json.dumps(compare(results([0.5, 0.6]), results([0.6, 0.7], "v2")).to_dict()))
    assert data["metrics"][0]["metric"] == "help"
    assert data["text"]


# ---- what always holds


@given(VALUES)
@example([(0.5, 0.3), (7.5, 0.25)])
def test_a_variant_compared_with_itself_says_nothing(values: list[tuple[float, float]]) -> None:
    side = results([value for value, _ in values])
    found = compare(side, side, **FEW)["help"]
    assert (found.difference, found.verdict) == (0.0, "cannot tell")
    assert not found.wins and not found.losses


@given(VALUES)
@example([(0.0, 1.0)] * 12)
@example([(0.3, 0.25)] * 4 + [(0.25, 0.5)] * 20)
def test_swapping_the_sides_flips_every_sign(values: list[tuple[float, float]]) -> None:
    a, b = results([one for one, _ in values]), results([other for _, other in values], "v2")
    there, back = compare(a, b, **FEW)["help"], compare(b, a, **FEW)["help"]
    flipped = {"better": "worse", "worse": "better", "cannot tell": "cannot tell"}
    assert there.verdict == flipped[back.verdict]
    assert there.difference == pytest.approx(-(back.difference or 0.0), abs=1e-12)
    assert (there.p, there.detectable) == (back.p, back.detectable)
    assert (there.wins, there.losses, there.ties) == (back.losses, back.wins, back.ties)
    if there.low is None or there.high is None:
        assert back.low is None and back.high is None
    else:
        assert (there.low, there.high) == pytest.approx((-(back.high or 0.0), -(back.low or 0.0)), abs=1e-12)


@given(VALUES, st.randoms(use_true_random=False))
def test_the_order_of_the_cases_does_not_matter(
    values: list[tuple[float, float]], order: random.Random
) -> None:
    a, b = results([one for one, _ in values]), results([other for _, other in values], "v2")
    mixed = list(a.results)
    order.shuffle(mixed)
    shuffled = attrs.evolve(a, results=tuple(mixed))

    def plain(one: MetricComparison) -> MetricComparison:
        return attrs.evolve(
            one,
            wins=tuple(sorted(one.wins)),
            ties=tuple(sorted(one.ties)),
            losses=tuple(sorted(one.losses)),
            mean_a=None,  # sums of the same floats in another order
            mean_b=None,
            wanted=None,
            more_cases=None,
        )

    assert plain(compare(a, b, **FEW)["help"]) == plain(compare(shuffled, b, **FEW)["help"])


def test_the_same_seed_gives_the_same_comparison() -> None:
    a, b = results(noise(40, 1)), results(noise(40, 2, shift=0.03), "v2")
    assert compare(a, b, seed=3) == compare(a, b, seed=3)


# ---- what is unknown


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        ([0.5], [0.9], "there is one case"),
        ([0.5] * 9, [0.5] * 9, "no case differs"),
        ([None] * 9, [0.5] * 9, "no case has a score on both sides"),
        ([float("nan")] * 9, [0.5] * 9, "no case has a score on both sides"),
    ],
)
def test_an_unknown_verdict_has_a_reason(a: list[Any], b: list[Any], reason: str) -> None:
    found = compare(results(a), results(b, "v2"))["help"]
    assert found.verdict == "cannot tell"
    assert found.reason is not None and reason in found.reason
    assert reason in found.text


def test_cases_of_a_single_conversation_is_unknown() -> None:
    a = variant_of([result(str(case), 0.1, conversation="one") for case in range(9)])
    b = variant_of([result(str(case), 0.9, variant="v2", conversation="one") for case in range(9)], "v2")
    assert "one conversation" in compare(a, b)["help"].text


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        (results([]), results([0.5], "v2"), "'v1' has no results"),
        (results([0.5]), results([0.5], "v2", content="other"), "another content"),
        (
            variant_of([result("x", 0.5)]),
            variant_of([result("y", 0.5, variant="v2")], "v2"),
            "no case was run with both",
        ),
    ],
)
def test_variants_without_a_common_case_are_refused(a: Any, b: Any, reason: str) -> None:
    with pytest.raises(NotComparableError, match=reason):
        compare(a, b)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"metrics": "halp"}, "did you mean 'help'"),
        ({"metrics": []}, "at least one"),
        ({"level": 1.5}, "level"),
        ({"level": 0}, "level"),
        ({"resamples": 0}, "resamples"),
        ({"seed": -1}, "seed"),
    ],
)
def test_an_invalid_argument_is_named(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidOptionError, match=says):
        compare(results([0.5]), results([0.5], "v2"), **options)


def test_something_else_than_results_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match=r'evaluation\["v1"\]'):
        compare("v1", results([0.5]))  # type: ignore[arg-type]


def test_an_unknown_metric_of_a_comparison_is_named() -> None:
    with pytest.raises(InvalidOptionError, match="no 'halp'; did you mean 'help'"):
        compare(results([0.5]), results([0.5], "v2"))["halp"]


def test_what_rounding_leaves_of_equal_means_is_no_difference() -> None:
    def repeated(values: tuple[float, float], variant: str) -> VariantResults:
        made = [
            result(str(case), value, variant=variant, repeat=repeat)
            for case in range(12)
            for repeat, value in enumerate(values)
        ]
        return variant_of(made, variant)

    found = compare(repeated((0.2, 0.4), "v1"), repeated((0.1, 0.5), "v2"), metrics="help")["help"]
    assert (found.verdict, found.reason, len(found.ties)) == ("cannot tell", "no case differs", 12)
