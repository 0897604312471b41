"""Which parts of two requests differ."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.traces.capture import ModelAnswer, ModelRequest, ToolDefinition
from kantan_agents.traces.capture.compare import Difference, answer_differences, differences
from tests.sizes import examples
from tests.traces.capture.requests import one_part_changed, requests

ASKED = {"role": "user", "content": "Where is 7?"}
ANSWERED = {"role": "assistant", "content": "In the yard."}
LOOK = ToolDefinition("function", "look", "Look up an order.", {"type": "object"}, names=("look",))
WAIT = ToolDefinition("function", "wait", "Wait.", names=("wait",))
REQUEST = ModelRequest("You help.", [ASKED, ANSWERED, ASKED], {"temperature": 0.5}, (LOOK, WAIT))


def changed(**parts: Any) -> list[Difference]:
    return differences(REQUEST, attrs.evolve(REQUEST, **parts))


@given(one_part_changed())
def test_exactly_the_changed_part_is_named(case: tuple[ModelRequest, ModelRequest, str]) -> None:
    request, other, part = case
    assert [difference.part for difference in differences(request, other)] == [part]
    assert len(differences(other, request)) == 1


def test_a_changed_item_is_one_difference_although_the_next_one_is_what_it_was() -> None:
    one = ModelRequest(None, [ASKED, ASKED])
    (found,) = differences(one, attrs.evolve(one, input=[ANSWERED, ASKED]))
    assert found == Difference("input[0]", ASKED, ANSWERED)


@examples(20)
@given(requests, requests)
def test_requests_differ_exactly_if_their_hashes_do(one: ModelRequest, other: ModelRequest) -> None:
    assert bool(differences(one, other)) == (one.hash != other.hash)
    assert not differences(one, attrs.evolve(one))


@examples(20)
@given(requests, requests)
def test_each_difference_says_which_values_differ(one: ModelRequest, other: ModelRequest) -> None:
    for difference in differences(one, other):
        assert (difference.before is None) >= (difference.kind == "added")
        assert (difference.after is None) >= (difference.kind == "removed")
        assert difference.diff
        assert len(difference.diff) < 4_000


@pytest.mark.parametrize(
    ("before", "after"), [(1, True), (1, 1.0), (0, None), ("1", 1), ({}, []), ({}, None)]
)
def test_values_that_python_or_a_reader_takes_for_equal_differ(before: Any, after: Any) -> None:
    one = ModelRequest(None, "", {"limit": before})
    found = differences(one, attrs.evolve(one, settings={"limit": after}))
    assert found == [Difference("settings.limit", before, after)]


def test_a_setting_inside_another_is_named_by_its_path() -> None:
    one = ModelRequest(None, "", {"reasoning": {"effort": "low", "summary": "auto"}})
    found = differences(one, attrs.evolve(one, settings={"reasoning": {"effort": "high", "summary": "auto"}}))
    assert found == [Difference("settings.reasoning.effort", "low", "high")]
    assert str(found[0]) == "settings.reasoning.effort changed\n-low\n+high"


def test_other_parts_of_the_input_keep_their_names_when_an_item_is_inserted_or_removed() -> None:
    new = {"role": "user", "content": "And 8?"}
    assert changed(input=[new, *REQUEST.input]) == [Difference("input[0]", None, new, "added")]
    assert changed(input=[ASKED, ASKED]) == [Difference("input[1]", ANSWERED, None, "removed")]
    assert [found.part for found in changed(input="Where is 7?")] == ["input"]


def test_tools_in_another_order_are_one_difference() -> None:
    assert changed(tools=(WAIT, LOOK)) == [Difference("tools.order", ["look", "wait"], ["wait", "look"])]


def test_a_tool_that_was_renamed_is_not_taken_for_two() -> None:
    seen = attrs.evolve(LOOK, name="see", names=("see",))
    assert changed(tools=(seen, WAIT)) == [Difference("tools.look.name", "look", "see")]
    moved = changed(tools=(WAIT, seen))
    assert [found.part for found in moved] == ["tools.look.name", "tools.order"]
    other = attrs.evolve(seen, description="See.")
    assert [(found.part, found.kind) for found in changed(tools=(other, WAIT))] == [
        ("tools.look", "removed"),
        ("tools.see", "added"),
    ]


def test_a_second_tool_of_the_same_name_is_named_by_its_number() -> None:
    twice = attrs.evolve(REQUEST, tools=(LOOK, LOOK))
    other = attrs.evolve(REQUEST, tools=(LOOK, attrs.evolve(LOOK, description="Look.")))
    assert [found.part for found in differences(twice, other)] == ["tools.look#2.description"]
    assert [found.part for found in differences(twice, attrs.evolve(twice, tools=(LOOK,)))] == [
        "tools.look#2"
    ]


def test_a_tool_whose_name_looks_like_a_number_hides_no_other() -> None:
    odd = attrs.evolve(LOOK, name="look#2", names=("look#2",))
    tools = attrs.evolve(REQUEST, tools=(odd, LOOK, LOOK))
    other = attrs.evolve(REQUEST, tools=(odd, LOOK, attrs.evolve(LOOK, description="Look.")))
    assert [found.part for found in differences(tools, other)] == ["tools.look#3.description"]


def test_answers_are_compared_item_by_item() -> None:
    one, other = ModelAnswer([ASKED, ANSWERED]), ModelAnswer([ASKED])
    assert answer_differences(one, other) == [Difference("answer[1]", ANSWERED, None, "removed")]
    assert answer_differences(None, other) == [Difference("answer[0]", None, ASKED, "added")]
    assert answer_differences(other, other) == answer_differences(None, None) == []


def test_the_diff_of_a_long_text_shows_where_it_changes() -> None:
    text = "x" * 10_000
    one = ModelRequest(f"{text}A{text}", "")
    (found,) = differences(one, attrs.evolve(one, instructions=f"{text}B{text}"))
    removed, added = found.diff.split("\n")
    assert removed == added.replace("B", "A").replace("+", "-")
    assert "xA" in removed
    assert len(removed) < 200


def test_the_diff_of_many_lines_is_cut() -> None:
    one = ModelRequest("\n".join(map(str, range(100))), "")
    (found,) = differences(one, attrs.evolve(one, instructions=None))
    assert found.diff.split("\n")[-1] == "... 89 more lines"
    assert len(found.diff.split("\n")) == 13


@given(st.text("ab\n", max_size=12), st.text("ab\n", max_size=12))
def test_each_change_of_a_text_is_seen_in_its_diff(before: str, after: str) -> None:
    found = differences(ModelRequest(before, ""), ModelRequest(after, ""))
    assert all(line[0] in "-+" for difference in found for line in difference.diff.split("\n"))
    assert len(found) == (before != after)
