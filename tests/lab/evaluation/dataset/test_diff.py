"""What is different in another version of a dataset."""

from __future__ import annotations

from hypothesis import given

from kantan_agents.lab import Case, Dataset
from tests.lab.evaluation.values import case_lists, cases
from tests.sizes import examples

OLD = Dataset(
    "old",
    [
        Case("a", id="1", context={"name": "Ada", "n": 1}, expected={"x": 1}),
        Case("b", id="2", metadata={"topic": "t"}),
        Case("c", id="3"),
        Case("d", id="4"),
    ],
)
NEW = Dataset(
    "new",
    [
        Case("d", id="4"),
        Case("a!", id="1", context={"name": "Bob", "n": 1, "more": None}, expected={"x": 2}),
        Case("b", id="2", metadata={"topic": "u"}, conversation="k"),
        Case("e", id="5"),
    ],
)


def test_added_removed_and_changed_cases_are_named_with_their_fields() -> None:
    found = OLD.diff(NEW)
    assert [case.id for case in found.added] == ["5"] and [case.id for case in found.removed] == ["3"]
    assert [(one.id, one.fields, one.is_run_again) for one in found.changed] == [
        ("1", ("input", "context.name", "context.more", "expected"), True),
        ("2", ("conversation", "metadata.topic"), False),
    ]
    assert found.text.splitlines() == [
        "+ 5",
        "- 3",
        "~ 1: input, context.name, context.more, expected",
        "~ 2: conversation, metadata.topic",
        "1 added, 1 removed, 2 changed, 1 the same",
    ]
    assert found.to_dict()["changed"][1] == {
        "id": "2",
        "fields": ["conversation", "metadata.topic"],
        "is_run_again": False,
    }


def test_an_id_with_line_breaks_is_one_line_of_the_text() -> None:
    found = Dataset("a", []).diff(Dataset("b", [Case("q", id="1\n- 2")]))
    assert found.text.splitlines() == ["+ 1 - 2", "1 added, 0 removed, 0 changed, 0 the same"]


@examples(20, 40)
@given(case_lists(cases()), case_lists(cases()))
def test_a_diff_is_empty_only_for_the_same_cases_and_turns_round(one: list[Case], other: list[Case]) -> None:
    old, new = Dataset("a", one), Dataset("b", other)
    assert not old.diff(Dataset("c", reversed(one)))
    there, back = old.diff(new), new.diff(old)
    assert there.added == back.removed and there.removed == back.added
    assert {each.id: {*each.fields} for each in there.changed} == {
        each.id: {*each.fields} for each in back.changed
    }
    assert bool(there) or old.hash == new.hash
    assert old.hash == new.hash or there
