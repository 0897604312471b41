"""Several variants compared with one control, with one correction."""

from __future__ import annotations

import json
import random
from typing import Any

import attrs
import pytest

from kantan_agents.errors import EvaluationNotFoundError, InvalidOptionError, NotComparableError
from kantan_agents.lab import VariantResults, compare, compare_all
from kantan_agents.lab.evaluation.statistics import holm
from tests.lab.evaluation.comparing.scores import result, results, variant_of

FEW: dict[str, Any] = {"resamples": 500}


def variant(name: str, seed: int, shift: float = 0.0, count: int = 40, **more: Any) -> VariantResults:
    drawn = random.Random(seed)
    return results([0.4 + shift + 0.2 * drawn.random() for _ in range(count)], name, **more)


CONTROL = variant("v1", 1)


def test_each_p_is_adjusted_for_all_variants_and_metrics() -> None:
    others = [variant("v2", 2, 0.1), variant("v3", 3), variant("v4", 4, 0.02, seconds=2.0)]
    found = compare_all(CONTROL, *others, resamples=2_400)
    pairs = [compare(CONTROL, one, resamples=2_400) for one in others]
    assert found.variants == ("v2", "v3", "v4")
    alone = [one.p for pair in pairs for one in pair if one.p_adjusted is not None]
    together = [one.p_adjusted for one in found.metrics if one.p_adjusted is not None]
    assert together == pytest.approx(holm(alone))  # type: ignore[arg-type]
    assert found["v2"]["help"].verdict == "better"
    assert found["v4"]["latency"].verdict == "worse"
    assert found["v2"]["help"].low == pairs[0]["help"].low


def test_what_is_clear_in_one_of_ten_may_be_luck() -> None:
    lucky = variant("lucky", 9, 0.035)
    assert compare(CONTROL, lucky, metrics="help", **FEW)["help"].verdict == "better"
    others = [variant(f"v{number}", number) for number in range(11, 20)]
    found = compare_all(CONTROL, lucky, *others, metrics="help", **FEW)
    assert {one.verdict for one in found.metrics} == {"cannot tell"}


def test_the_text_names_each_variant_and_what_the_verdicts_hold_for() -> None:
    broken = variant_of([result(str(case), 0.5, variant="v3", failed=case == 0) for case in range(40)], "v3")
    found = compare_all(CONTROL, variant("v2", 2, 0.1), broken, metrics="help", **FEW)
    assert found.text.startswith("v2 better on help by 0.")
    assert "; v3 on help: cannot tell, the difference is " in found.text
    assert found.text.count("1 failed run of v3") == 1
    assert "adjusted for all 2 tests together (Holm); each interval holds" in found.text
    assert found.text.endswith('compare with looks "any" from the first look on')


def test_it_is_json_and_can_be_walked_and_looked_up() -> None:
    found = compare_all(CONTROL, variant("v2", 2), variant("v3", 3), metrics="help", **FEW)
    data = json.loads(json.dumps(found.to_dict()))
    assert [one["b"] for one in data["comparisons"]] == ["v2", "v3"]
    assert (data["control"], data["looks"], data["text"]) == ("v1", "one", found.text)
    assert (len(found), [one.b for one in found]) == (2, ["v2", "v3"])
    with pytest.raises(EvaluationNotFoundError, match="did you mean 'v3'"):
        found["v33"]


def test_at_any_look_it_holds_for_all_too() -> None:
    grown = attrs.evolve(variant("v3", 3), is_grown=True)
    found = compare_all(CONTROL, variant("v2", 2, 0.1), grown, metrics="help", **FEW)
    assert {one.looks for one in found} == {"any"} == {found.looks}
    assert found.note.endswith(", at the end of the dataset, as the order of the runs is not known")


def test_more_patterns_are_drawn_if_the_number_of_tests_needs_it() -> None:
    others = [variant(f"v{number}", number, 0.1) for number in range(2, 8)]
    found = compare_all(CONTROL, *others, metrics="help", resamples=10)
    assert {one.verdict for one in found.metrics} == {"better"}


def test_variants_of_one_name_are_named_with_their_evaluation() -> None:
    other = attrs.evolve(variant("v1", 2), evaluation="later")
    assert compare_all(CONTROL, other, variant("v2", 3), metrics="help", **FEW).variants == (
        "v1 of later",
        "v2",
    )


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ((CONTROL,), "'v1' is the only variant"),
        ((CONTROL, CONTROL), "'v1 of e' is given twice"),
        ((CONTROL, "v2"), 'others: must be the results of a variant, such as evaluation\\["v1"\\], not str'),
        (("v1",), "control: must be the results of a variant"),
    ],
)
def test_bad_arguments_are_refused(given: Any, text: str) -> None:
    with pytest.raises(InvalidOptionError, match=text):
        compare_all(*given)


def test_a_variant_without_a_common_case_is_named() -> None:
    other = variant_of([result("elsewhere", 0.5, variant="v3")], "v3")
    with pytest.raises(NotComparableError, match="'v3'"):
        compare_all(CONTROL, variant("v2", 2), other)


def test_a_metric_that_only_some_variants_have_is_compared_where_it_is() -> None:
    other = variant_of([result(str(case), 0.5, variant="v3", metric="style") for case in range(40)], "v3")
    found = compare_all(CONTROL, variant("v2", 2), other, metrics=["help", "style"], **FEW)
    assert found["v3"]["help"].reason == "no case has a score on both sides"
    assert found["v2"]["style"].cases == 0
    with pytest.raises(InvalidOptionError, match="there is no 'stile'; did you mean 'style'"):
        compare_all(CONTROL, other, metrics="stile")


def test_markdown_never_leaves_out_what_the_verdicts_hold_for() -> None:
    others = [variant(f"v{number}", number) for number in range(2, 26)]
    text = compare_all(CONTROL, *others, metrics="help", **FEW).to_markdown()
    assert "and 4 more" in text
    assert text.endswith('compare with looks "any" from the first look on\n')
