"""The queue of results that a person labels."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import Agent, TraceStore
from kantan_agents.errors import EvaluationNotFoundError, InvalidOptionError
from kantan_agents.lab import (
    Case,
    Dataset,
    Evaluation,
    LabelItem,
    LabelQueue,
    LabelScale,
    add_label,
    evaluate,
    labels_of,
)
from kantan_agents.testing import ScriptedModel, ScriptedToolCall
from tests.lab.evaluation.labels.shop import copied, evaluate_shop, good, label_all, plain
from tests.programs import Preloaded
from tests.sizes import examples

# ---- what is asked


def test_a_queue_has_all_finished_results_and_shows_what_the_agent_was_given_and_did(
    evaluation: Evaluation,
) -> None:
    queue = LabelQueue.of(evaluation, "helpful", by="aiko")
    assert (len(queue), queue.total, queue.probability) == (80, 80, 1.0)
    item = queue.current
    assert item is not None
    assert item.input.startswith("question")  # type: ignore[union-attr]
    assert item.context == {"customer": {"name": "Aiko"}}
    assert item.expected == "right"
    assert str(item.output).endswith(f"about {item.input}")
    assert item.tool_calls == ()


def test_what_is_labelled_is_stored_at_once_and_not_asked_again(evaluation: Evaluation) -> None:
    queue = LabelQueue.of(evaluation, "helpful", by="aiko")
    for item in list(queue)[:2]:
        queue.label(item, good(str(item.output)), comment="so it is")
    labels = labels_of(evaluation, "helpful")
    assert len(labels) == 2
    assert {one.by for one in labels} == {"aiko"} and {one.comment for one in labels} == {"so it is"}
    assert len(LabelQueue.of(evaluation, "helpful", by="aiko")) == 78
    assert len(LabelQueue.of(evaluation, "helpful", by="bo")) == 80
    assert len(LabelQueue.of(evaluation, "polite", by="aiko")) == 80


def test_all_variants_of_a_case_follow_one_another_in_an_order_that_says_nothing(
    evaluation: Evaluation,
) -> None:
    queue = LabelQueue.of(evaluation, "helpful", by="aiko")
    items = list(queue)
    pairs = [(items[place].case_id, items[place + 1].case_id) for place in range(0, 80, 2)]
    assert all(one == other for one, other in pairs)
    assert [one for one, _ in pairs] != sorted(one for one, _ in pairs)
    for item in items:
        answered = queue.label(item, 1)
    assert set(answered.variants.values()) == {"v1", "v2"}
    first = [queue.label(item, 1).variants[item.number] for item in items[::2]]
    assert 5 < first.count("v1") < 35


def test_a_sample_draws_cases_with_all_their_variants_and_stores_the_probability(
    evaluation: Evaluation,
) -> None:
    queue = LabelQueue.of(evaluation, "helpful", by="aiko", sample=10)
    label_all(queue)
    labels = labels_of(evaluation)
    assert len(labels) == 20
    assert len({one.case_id for one in labels}) == 10
    assert {one.probability for one in labels} == {0.25}


def test_the_same_seed_draws_the_same_and_a_larger_sample_contains_a_smaller_one(
    evaluation: Evaluation,
) -> None:
    def drawn(**options: Any) -> list[str]:
        return [item.case_id for item in LabelQueue.of(evaluation, "helpful", **options)]

    small = drawn(by="aiko", sample=10, seed=3)
    assert drawn(by="aiko", sample=10, seed=3) == small
    assert drawn(by="aiko", sample=20, seed=3)[:20] == small
    assert drawn(by="bo", sample=10, seed=3) == small
    assert drawn(by="aiko", sample=10, seed=4) != small
    assert len(drawn(by="aiko", sample=500)) == 80


def test_a_draw_is_made_among_all_results_labelled_or_not(evaluation: Evaluation) -> None:
    label_all(LabelQueue.of(evaluation, "helpful", by="aiko", sample=10))
    again = LabelQueue.of(evaluation, "helpful", by="aiko", sample=20)
    assert (len(again), again.probability) == (20, 0.5)
    assert len(LabelQueue.of(evaluation, "helpful", by="aiko", sample=10)) == 0


def test_only_chosen_variants_are_asked_about(evaluation: Evaluation) -> None:
    queue = LabelQueue.of(evaluation, "helpful", by="aiko", variants="v2", sample=8)
    label_all(queue)
    assert {one.variant for one in labels_of(evaluation)} == {"v2"}
    assert queue.probability == 0.2
    with pytest.raises(EvaluationNotFoundError, match="v3"):
        LabelQueue.of(evaluation, "helpful", by="aiko", variants=["v1", "v3"])


def test_each_repetition_is_a_run_of_its_own(tmp_path: Path) -> None:
    evaluation = evaluate_shop(tmp_path / "t.sqlite3", 3, ["v1"], repeats=4)
    queue = LabelQueue.of(evaluation, "helpful", by="aiko", sample=6)
    assert (len(queue), queue.probability) == (6, 0.5)


def test_a_label_picked_by_hand_is_asked_again_if_it_is_drawn(evaluation: Evaluation) -> None:
    add_label(evaluation, "case-1", "v1", 0, "helpful", True, by="aiko")
    queue = LabelQueue.of(evaluation, "helpful", by="aiko")
    assert len(queue) == 80
    label_all(queue)
    assert {one.probability for one in labels_of(evaluation)} == {1.0}


# ---- what is hidden


@examples(15)
@given(st.integers(0, 10_000), st.sampled_from([None, 2]), st.sampled_from(["aiko", "v1", "bo"]))
def test_nothing_of_an_item_shows_the_score_or_the_variant_before_the_answer(
    few: Path, seed: int, sample: int | None, by: str
) -> None:
    with copied(few) as evaluation:
        scores = {
            (one.case_id, str(one.output)): repr(one.scores["helpful"].value) for one in evaluation.results
        }
        queue = LabelQueue.of(evaluation, "helpful", by=by, seed=seed, sample=sample)
        one, other = list(queue)[:2]
        for item in (one, other):
            shown = {**attrs.asdict(item), "number": None}
            assert set(shown) == {"number", "case_id", "input", "context", "expected", "output", "tool_calls"}
            assert "'v1'" not in repr(shown) and "'v2'" not in repr(shown)
            assert scores[item.case_id, str(item.output)] not in repr(shown)
        first = queue.label(one, True)
        assert first.scores["helpful"].value is not None
        assert first.variants == {}  # it would tell the other one
        assert set(queue.label(other, False).variants.values()) == {"v1", "v2"}


def test_the_name_of_an_agent_that_called_a_tool_is_hidden(tmp_path: Path) -> None:
    def look(what: str) -> str:
        """Look something up."""
        return f"seen {what}"

    model = ScriptedModel([[ScriptedToolCall("look", {"what": "x"})], "done"])
    agent = Agent("the-new-one", "Look.", model=model, tools=[look])
    found = evaluate(agent, Dataset("d", [Case("go")]), store=tmp_path / "t.sqlite3")
    item = LabelQueue.of(found, "helpful", by="aiko").current
    assert item is not None
    assert (item.tool_calls[0].name, item.tool_calls[0].output) == ("look", "seen x")
    assert "the-new-one" not in repr(item)


# ---- skip and undo


def test_what_is_skipped_waits_in_another_queue(evaluation: Evaluation) -> None:
    queue = LabelQueue.of(evaluation, "helpful", by="aiko", sample=1)
    for item in queue:
        queue.skip(item)
    assert (len(queue), queue.skipped, queue.labelled, queue.current) == (0, 2, 0, None)
    assert labels_of(evaluation) == ()
    assert len(LabelQueue.of(evaluation, "helpful", by="aiko", sample=1)) == 2


def test_an_undone_label_is_gone_and_its_result_is_the_next(evaluation: Evaluation) -> None:
    queue = LabelQueue.of(evaluation, "helpful", by="aiko")
    first = queue.current
    assert first is not None and queue.undo() is None
    queue.label(first, True)
    second = queue.current
    assert second is not None and second != first
    queue.label(second, True)
    assert queue.undo() == second
    assert queue.current == second and len(labels_of(evaluation)) == 1
    assert queue.undo() == first
    assert queue.current == first and labels_of(evaluation) == ()
    assert queue.undo() is None


@examples(8, published=20)
@given(st.lists(st.tuples(st.integers(0, 7), st.sampled_from([0, 1, 0.5, "skip"])), max_size=10))
def test_undoing_everything_restores_what_was_stored(few: Path, steps: list[tuple[int, float | str]]) -> None:
    with copied(few) as evaluation:
        for case in range(2):
            add_label(evaluation, f"case-{case}", "v1", 0, "helpful", 0.25, by="aiko", comment="before")
        before = labels_of(evaluation)
        queue = LabelQueue.of(evaluation, "helpful", by="aiko")
        items = list(queue)
        for place, value in steps:
            if isinstance(value, str):
                queue.skip(items[place])
            else:
                queue.label(items[place], value)
        for _ in steps:
            assert queue.undo() is not None
        assert labels_of(evaluation) == before
        assert (len(queue), queue.labelled, queue.skipped) == (8, 0, 0)


@examples(5, published=15)  # each commits many transactions to a file
@given(st.permutations(range(8)))
def test_the_order_of_labels_does_not_matter(few: Path, order: list[int]) -> None:
    with copied(few) as one, copied(few) as other:
        for evaluation, places in ((one, range(8)), (other, order)):
            queue = LabelQueue.of(evaluation, "helpful", by="aiko")
            items = list(queue)
            for place in places:
                queue.label(items[place], good(str(items[place].output)))
        assert plain(labels_of(one)) == plain(labels_of(other))


# ---- scales


@pytest.mark.parametrize(
    ("scale", "value", "stored", "label"),
    [
        ("yesno", True, 1.0, "yes"),
        ("yesno", 0, 0.0, "no"),
        ((0, 1), 0.25, 0.25, None),
        ((0, 1), True, 1.0, None),
        ("0-1", 1, 1.0, None),
        ("1-5", 1, 0.0, "1"),
        ("1-5", 4, 0.75, "4"),
        ((1, 5), 5, 1.0, "5"),
        (LabelScale.of("1-3"), 2, 0.5, "2"),
    ],
)
def test_an_answer_is_stored_from_0_to_1_and_a_grade_is_kept(
    evaluation: Evaluation, scale: Any, value: float, stored: float, label: str | None
) -> None:
    queue = LabelQueue.of(evaluation, "helpful", by="aiko", scale=scale)
    answered = queue.label(next(iter(queue)), value)
    assert (answered.value, answered.label) == (stored, label)
    (found,) = labels_of(evaluation)
    assert (found.value, found.label) == (stored, label)


@pytest.mark.parametrize(
    ("scale", "value"),
    [
        ("yesno", 0.5),
        ("0-1", 1.01),
        ("0-1", float("nan")),
        ("0-1", "y"),
        ("1-5", 0),
        ("1-5", True),
        ("1-5", None),
    ],
)
def test_an_answer_beside_the_scale_is_refused_and_not_stored(
    evaluation: Evaluation, scale: Any, value: Any
) -> None:
    queue = LabelQueue.of(evaluation, "helpful", by="aiko", scale=scale)
    item = next(iter(queue))
    with pytest.raises(InvalidOptionError, match="value"):
        queue.label(item, value)
    assert labels_of(evaluation) == () and queue.current == item


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"by": ""}, "by"),
        ({"by": "  "}, "by"),
        ({"by": "\ud800"}, "Unicode"),
        ({"sample": 0}, "sample"),
        ({"seed": -1}, "seed"),
        ({"scale": "5-1"}, "scale"),
        ({"scale": "many"}, "scale"),
        ({"scale": (0, float("inf"))}, "scale"),
        ({"metric": ""}, "metric"),
        ({"metric": " helpful"}, "begin with a space"),
    ],
)
def test_an_invalid_argument_is_named(evaluation: Evaluation, options: dict[str, Any], says: str) -> None:
    given_options = {"metric": "helpful", "by": "aiko", **options}
    with pytest.raises(InvalidOptionError, match=says):
        LabelQueue.of(evaluation, **given_options)


def test_an_item_of_another_queue_is_refused(evaluation: Evaluation) -> None:
    queue = LabelQueue.of(evaluation, "helpful", by="aiko", sample=2)
    other = LabelItem(1, "nothing", "", {}, None, "", ())
    for item in (other, attrs.evolve(next(iter(queue)), number=99), None):
        with pytest.raises(InvalidOptionError, match="item"):
            queue.label(item, 1)  # type: ignore[arg-type]


# ---- deleted runs


def test_the_labels_of_a_deleted_trace_are_deleted_with_it(evaluation: Evaluation) -> None:
    label_all(LabelQueue.of(evaluation, "helpful", by="aiko"))
    store = TraceStore(evaluation.path)
    kept = {one.trace_id for one in store.traces(limit=30)}
    store.prune(keep=30)
    loaded = Evaluation.load(store, evaluation.name)
    results = {(one.case_id, one.variant) for one in loaded.results if one.trace_id in kept}
    assert {(one.case_id, one.variant) for one in labels_of(loaded)} == results
    assert len(results) == 30
    store.prune(older_than=timedelta(0))
    assert Evaluation.load_all(store) == []


def test_a_result_that_was_deleted_meanwhile_cannot_be_labelled_and_is_left_out(
    evaluation: Evaluation,
) -> None:
    queue = LabelQueue.of(evaluation, "helpful", by="aiko")
    item = queue.current
    assert item is not None
    TraceStore(evaluation.path).prune(keep=0)
    with pytest.raises(InvalidOptionError, match="deleted meanwhile"):
        queue.label(item, 1)
    assert queue.current is None and list(queue) == []
    assert labels_of(evaluation) == ()


# ---- processes

_LABEL = """
import sys
from kantan_agents import TraceStore
from kantan_agents.lab.evaluation import Evaluation, LabelQueue

path, by = sys.argv[1:]
queue = LabelQueue.of(Evaluation.load(TraceStore(path), "shop"), "helpful", by=by, sample=5)
for item in queue:
    queue.label(item, "right" in item.output)
    print(len(queue), flush=True)
"""


def test_two_people_in_two_processes_do_not_lose_each_others_labels(
    evaluation: Evaluation, preloaded: Preloaded
) -> None:
    people = ("aiko", "bo")
    programs = [preloaded.popen(["-c", _LABEL, evaluation.path, by]) for by in people]
    for program in programs:
        program.communicate(timeout=120)
        assert program.returncode == 0
    labels = labels_of(evaluation)
    assert [sum(one.by == by for one in labels) for by in people] == [10, 10]


def test_what_is_labelled_survives_a_kill(evaluation: Evaluation, preloaded: Preloaded) -> None:
    program = preloaded.popen(["-c", _LABEL, evaluation.path, "aiko"], encoding="utf-8")
    assert program.stdout is not None
    left = [int(program.stdout.readline()) for _ in range(5)][-1]
    program.kill()
    program.communicate(timeout=60)
    assert left == 5
    assert len(labels_of(evaluation)) >= 5
    again = LabelQueue.of(evaluation, "helpful", by="aiko", sample=5)
    assert len(again) == 10 - len(labels_of(evaluation))
    label_all(again)
    assert len(labels_of(evaluation)) == 10
