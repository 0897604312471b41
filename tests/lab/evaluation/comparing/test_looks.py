"""Verdicts that hold at any look, while cases are added to an evaluation."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import attrs
import pytest

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab import Comparison, VariantResults, compare
from kantan_agents.traces.ids import new_run_id, trace_id_of
from tests.lab.evaluation.comparing.scores import result, results, variant_of


def recorded(values: Sequence[float], variant: str = "v1") -> VariantResults:
    """Return results whose traces say in which order they were run: the last case first."""
    given = results(values, variant)
    ids = [trace_id_of(new_run_id()) for _ in values][::-1]
    made = [attrs.evolve(one, trace_id=trace) for one, trace in zip(given.results, ids, strict=True)]
    return attrs.evolve(given, results=tuple(made))


def compared(*given: VariantResults, **more: Any) -> Comparison:
    return compare(*given, resamples=500, **more)


def flips(count: int, gain: float, seed: int = 1) -> tuple[list[float], list[float]]:
    drawn = random.Random(seed)
    before = [float(drawn.random() < 0.5) for _ in range(count)]
    return before, [float(one or drawn.random() < gain) for one in before]


def test_a_clear_difference_is_a_verdict_at_any_look() -> None:
    a, b = flips(80, 0.5)
    comparison = compared(recorded(a), recorded(b, "v2"), metrics="help", looks="any")
    found = comparison["help"]
    assert found.verdict == "better"
    assert found.low is not None and found.high is not None and found.difference is not None
    assert 0 < found.low < found.difference < found.high
    once = compared(recorded(a), recorded(b, "v2"), metrics="help")["help"]
    assert once.low is not None and found.low < once.low
    assert comparison.text.endswith("the verdicts hold at any look: you may add cases and look again")
    data = json.loads(json.dumps(comparison.to_dict()))
    assert (data["looks"], data["is_order_known"], data["note"]) == ("any", True, comparison.note)


def test_the_text_says_that_a_verdict_holds_for_one_look() -> None:
    comparison = compared(*(results(values, name) for values, name in zip(flips(9, 0.1), "ab", strict=True)))
    assert comparison.looks == "one"
    assert comparison.text.endswith(
        'hold for one look; to add cases and look again, compare with looks "any" from the first look on'
    )


def test_a_verdict_remains_when_cases_without_a_difference_are_added() -> None:
    a, b = flips(60, 0.5)
    same = [0.0, 1.0] * 15
    small = [
        compared(results(one), results(other, "v2"), metrics="help", looks="any")["help"]
        for one, other in ((a, b), (a + same, b + same))
    ]
    assert [one.verdict for one in small] == ["better", "better"]
    assert small[0].p is not None and small[1].p is not None and small[1].p <= small[0].p


def test_the_cases_count_in_the_order_in_which_they_were_run() -> None:
    # The first cases of the dataset, which were run last, are worse.
    a, b = [1.0] * 10 + [0.0] * 60, [0.0] * 10 + [1.0] * 60
    known = compared(recorded(a), recorded(b, "v2"), metrics="help", looks="any")
    turned = compared(results(a[::-1]), results(b[::-1], "v2"), metrics="help", looks="any")
    unknown = compared(results(a), results(b, "v2"), metrics="help", looks="any")
    assert (known.is_order_known, unknown.is_order_known) == (True, False)
    assert "at the end of the dataset, as the order of the runs is not known" in unknown.note
    assert known["help"].p == turned["help"].p != unknown["help"].p


def test_evidence_for_the_other_direction_is_none() -> None:
    a, b = [1.0] * 30 + [0.0] * 60, [0.0] * 30 + [1.0] * 60
    found = compared(results(a), results(b, "v2"), metrics="help", looks="any")["help"]
    assert (found.verdict, found.p, found.low) == ("cannot tell", 1.0, None)


def test_a_case_is_at_the_place_of_its_last_run() -> None:
    a = recorded([1.0] * 20 + [0.0] * 40)
    b = recorded([0.0] * 20 + [1.0] * 40, "v2")
    late = compared(a, b, metrics="help", looks="any")["help"].p
    again = [
        attrs.evolve(one, trace_id=trace_id_of(new_run_id())) if number < 20 else one
        for number, one in enumerate(b.results)
    ]
    assert compared(a, attrs.evolve(b, results=tuple(again)), metrics="help", looks="any")["help"].p == late


def test_it_is_said_how_many_more_cases_it_takes_at_any_look() -> None:
    a, _ = flips(40, 0.0)
    once, always = (
        compared(results(a), results(a[::-1], "v2"), metrics="help", looks=looks)["help"]
        for looks in ("one", "any")
    )
    assert once.more_cases is not None and always.more_cases is not None
    assert once.more_cases < always.more_cases < 3 * once.more_cases
    assert "more cases would show a difference of 0.05" in always.text


def test_what_has_no_bounds_has_a_verdict_without_an_interval() -> None:
    drawn = random.Random(2)
    many = [result(str(case), 0.5, input_tokens=100 + drawn.randrange(50)) for case in range(60)]
    few = [result(str(case), 0.5, variant="v2", input_tokens=70 + drawn.randrange(50)) for case in range(60)]
    found = compared(variant_of(many), variant_of(few, "v2"), looks="any")["tokens"]
    assert (found.verdict, found.low, found.high) == ("better", None, None)
    assert "v2 better on tokens by " in found.text
    assert found.difference == pytest.approx(found.mean_b - found.mean_a)  # type: ignore[operator]


def test_the_cases_of_a_conversation_are_one_value() -> None:
    a, b = flips(20, 0.9)

    def variant(name: str, values: list[float], turns: int) -> VariantResults:
        made = [
            result(f"{number}-{turn}", value, variant=name, conversation=str(number))
            for number, value in enumerate(values)
            for turn in range(turns)
        ]
        return variant_of(made, name)

    found = [
        compared(variant("v1", a, turns), variant("v2", b, turns), metrics="help", looks="any")["help"]
        for turns in (1, 5)
    ]
    assert found[0].p == found[1].p


@pytest.mark.parametrize("count", [0, 1])
def test_too_little_is_no_verdict(count: int) -> None:
    a = variant_of([result(str(case), 1.0 if case < count else None) for case in range(3)])
    b = results([0.0] * 3, "v2")
    found = compared(a, b, metrics="help", looks="any", missing="ignore")["help"]
    assert (found.verdict, found.cases) == ("cannot tell", count)
    assert found.reason is not None


def test_an_evaluation_that_has_grown_is_looked_at_again() -> None:
    a, b = (results(values, name) for values, name in zip(flips(30, 0.3), ("v1", "v2"), strict=True))
    grown = attrs.evolve(b, is_grown=True)
    assert compared(a, b).looks == "one"
    assert compared(a, grown).looks == "any"
    once = compared(a, grown, looks="one")
    assert once.looks == "one"
    assert once.note.endswith("for one look, and cases were added after an earlier one")


def test_another_number_of_looks_is_invalid() -> None:
    a = results([0.5])
    with pytest.raises(InvalidOptionError, match='looks: must be "one" or "any", not 10'):
        compared(a, a, looks=10)


def test_an_earlier_verdict_for_one_look_is_said_to_be_a_chance_of_its_own() -> None:
    a, b = (results(values, name) for values, name in zip(flips(30, 0.3), ("v1", "v2"), strict=True))
    grown = compared(a, attrs.evolve(b, is_grown=True), level=0.99)
    assert "read before cases were added is a chance of its own, of 1%, to be false" in grown.note
    assert "before cases were added" not in compared(a, b, looks="any").note


def made_again(given: VariantResults, places: range) -> VariantResults:
    """Return results of which some runs had failed first, and were made again after all others."""
    made = [
        attrs.evolve(one, first_trace_id=one.trace_id, trace_id=trace_id_of(new_run_id()))
        if number in places
        else one
        for number, one in enumerate(given.results)
    ]
    return attrs.evolve(given, results=tuple(made))


def test_a_case_keeps_its_place_if_a_failed_run_that_counts_is_made_again() -> None:
    a, b = recorded([0.0] * 60), recorded([0.1] * 50 + [1.0] * 10, "v2")
    again = made_again(b, range(50, 60))
    p = {
        (missing, name): compared(a, one, metrics="help", looks="any", missing=missing)["help"].p
        for missing in ("worst", "ignore")
        for name, one in (("before", b), ("again", again))
    }
    assert p["worst", "again"] == p["worst", "before"] == p["ignore", "before"]
    # Where failed runs do not count, the case is new.
    assert p["ignore", "again"] != p["ignore", "before"]


def test_a_missing_score_without_bounds_has_no_verdict_at_any_look() -> None:
    a = variant_of([result(str(case), 5.0) for case in range(30)])
    b = variant_of([result(str(case), 3.0, variant="v2", failed=case == 0) for case in range(30)], "v2")
    found = compared(a, b, metrics=["help", "failed"], looks="any")
    assert (found["help"].verdict, found["help"].p, found["help"].fewest) == ("cannot tell", None, 0)
    assert "must not depend on later scores; give scores from 0 to 1, or ignore missing ones" in found.text
    assert found["failed"].p is not None
    ignored = compared(a, b, metrics="help", looks="any", missing="ignore")["help"]
    assert (ignored.verdict, ignored.cases) == ("worse", 29)
    assert compared(a, b, metrics="help")["help"].verdict == "worse"
