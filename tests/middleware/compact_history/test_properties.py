"""Properties of shortened conversations, over generated ones."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st

from kantan_agents import Agent
from kantan_agents.middleware import CompactHistory
from kantan_agents.middleware.compact_history.plan import WHOLE, CompactionPlan, read_text
from kantan_agents.middleware.compact_history.recorded_plans import plan_between
from kantan_agents.middleware.compact_history.shorten import Conversation, TokenLimits, shortened
from kantan_agents.middleware.compact_history.tokens import tokens_of_item, tokens_of_text
from kantan_agents.middleware.compact_history.tool_results import can_be_shortened, cut_text, stub_of
from kantan_agents.middleware.compact_history.turns import turns_of
from kantan_agents.traces.capture.canonical import canonical
from tests.middleware.compact_history.conversations import (
    Answering,
    belonging_together,
    conversations,
    is_loose,
)

limits = st.builds(
    lambda most, keep_turns, keep_first: TokenLimits(most, most * 4 // 5, most // 2, keep_turns, keep_first),
    st.integers(50, 6_000),
    st.integers(1, 8),
    st.booleans(),
)


def plan_for(
    items: list[Any], given: TokenLimits, before: CompactionPlan = WHOLE, *, ratio: float = 1.0
) -> CompactionPlan:
    conversation = Conversation.of(items)
    size = ratio * conversation.size(before)
    return shortened(conversation, before, given, size=size, ratio=ratio, summarizes=False)


def size_of(items: list[Any]) -> int:
    return sum(map(tokens_of_item, items))


@given(conversations())
def test_each_item_is_in_one_turn(items: list[Any]) -> None:
    assert [place for turn in turns_of(items) for place in turn.places] == [*range(len(items))]


@given(conversations(), limits)
def test_calls_and_results_stay_pairs_and_reasoning_stays_with_what_follows(
    items: list[Any], given: TokenLimits
) -> None:
    removed = plan_for(items, given).removed
    assert all((one in removed) == (other in removed) for one, other in belonging_together(items))
    assert not any(is_loose(items, place) for place in removed)


@given(conversations(), limits)
def test_the_newest_turns_and_instructions_stay(items: list[Any], given: TokenLimits) -> None:
    plan = plan_for(items, given)
    turns = turns_of(items)
    newest = turns[-given.keep_turns :]
    kept = {place for turn in newest for place in turn.places}
    kept |= {place for turn in turns if turn.kind == "fixed" for place in turn.places}
    kept.add(max(place for place, item in enumerate(items) if item.get("role") == "user"))
    if given.keep_first:
        kept.update(next(turn.places for turn in turns if turn.kind == "user"))
    assert kept.isdisjoint(plan.removed)
    # The results among them are cut only if everything older was not enough.
    changed = {place for turn in newest for place in turn.places} & plan.replaced.keys()
    assert all(can_be_shortened(items[place]) for place in changed)


@given(conversations(), limits)
def test_what_is_sent_is_shorter_and_in_order(items: list[Any], given: TokenLimits) -> None:
    plan = plan_for(items, given)
    sent = [item for item in plan.applied(items) if item != plan.note]
    left = [place for place in range(len(items)) if place not in plan.removed]
    assert len(sent) == len(left)
    for item, place in zip(sent, left, strict=True):
        assert item == plan.replaced.get(place, items[place])
        assert tokens_of_item(item) <= tokens_of_item(items[place])
    assert plan == WHOLE or size_of(plan.applied(items)) < size_of(items)
    assert Conversation.of(items).size(plan) == size_of(plan.applied(items))


@given(conversations(), limits, st.sampled_from([0.5, 1.0, 2.0]))
def test_a_shortened_request_is_within_the_target_if_that_is_possible(
    items: list[Any], given: TokenLimits, ratio: float
) -> None:
    plan = plan_for(items, given, ratio=ratio)
    size = ratio * size_of(plan.applied(items))
    if size <= given.target:
        return
    # Nothing old is left that could go: turns are new, fixed, or shorter than a note of their removal.
    turns = turns_of(items)
    first = [turn for turn in turns if turn.kind == "user"][: given.keep_first]
    last = [turn for turn in turns if turn.kind == "user"][-1:]
    old = [
        turn
        for turn in turns[: -given.keep_turns]
        if turn.kind != "fixed" and turn not in first + last and turn.start not in plan.removed
    ]
    left = [plan.replaced.get(place, items[place]) for turn in old for place in turn.places]
    # A request that may be sent is not shortened by less than a twentieth if that does not reach the target.
    little = 0 if size > given.most else 0.05 * given.most / ratio
    assert size_of(left) <= 80 + little
    if size > given.most:
        results = [
            plan.replaced.get(place, item)
            for place, item in enumerate(items)
            if place not in plan.removed and can_be_shortened(item)
        ]
        assert all(ratio * tokens_of_item(item) <= 140 * max(ratio, 1) for item in results)


@given(conversations(), limits)
def test_the_same_conversation_gives_the_same_plan_and_is_not_changed(
    items: list[Any], given: TokenLimits
) -> None:
    before = copy.deepcopy(items)
    plan = plan_for(items, given)
    plan.applied(items)
    assert items == before
    assert plan_for(copy.deepcopy(items), given) == plan


@given(conversations(), limits)
def test_shortening_what_was_shortened_changes_nothing(items: list[Any], given: TokenLimits) -> None:
    plan = plan_for(items, given)
    if Conversation.of(items).size(plan) <= given.target:
        assert plan_for(items, given, plan) == plan
        again = plan.applied(items)
        assert plan_for(again, given) == WHOLE


@given(conversations(), conversations(), limits)
def test_a_plan_goes_on_to_apply_while_a_conversation_grows(
    items: list[Any], more: list[Any], given: TokenLimits
) -> None:
    plan = plan_for(items, given)
    sent = plan.applied(items)
    assert plan.applied([*items, *more])[: len(sent)] == sent
    later = plan_for([*items, *more], given, plan)
    assert later.removed >= plan.removed


@given(conversations(), limits, st.text(max_size=30), st.integers(0, 3))
def test_the_plan_of_a_recorded_request_is_found_again(
    items: list[Any], given: TokenLimits, summary: str, unread: int
) -> None:
    plan = plan_for(items, given)
    if plan.removed:
        plan = attrs.evolve(plan, summary=summary, unread=min(unread, len(plan.removed)))
    sent = plan.applied(items)
    found = plan_between(items, [canonical(item) for item in items], sent)
    assert found is not None
    assert found.applied(items) == sent


@given(conversations(), limits)
def test_a_request_that_was_not_made_from_a_conversation_has_no_plan(
    items: list[Any], given: TokenLimits
) -> None:
    whole = [canonical(item) for item in items]
    other = [*plan_for(items, given).applied(items), {"role": "user", "content": "Something else."}]
    assert plan_between(items, whole, other) is None
    assert plan_between(items, whole, items[:-1]) is None


@given(st.text(), st.floats(0, 1))
def test_a_text_that_is_cut_is_shorter_and_keeps_its_ends(text: str, share: float) -> None:
    cut = cut_text(text, share)
    assert cut == text or (len(cut) < len(text) and "characters removed here" in cut)
    kept = int(len(text) * share)
    assert cut.startswith(text[: kept - kept // 2])
    assert cut.endswith(text[len(text) - kept // 2 :])


@given(st.text(), st.text())
def test_an_estimate_grows_with_the_text(one: str, other: str) -> None:
    both = tokens_of_text(one + other)
    assert max(tokens_of_text(one), tokens_of_text(other)) <= both
    assert both <= tokens_of_text(one) + tokens_of_text(other) <= both + 1


@given(st.integers(0, 3_000), st.integers(1, 3_000), st.none() | st.text())
def test_the_text_in_place_of_what_was_removed_can_be_read_again(
    unread: int, read: int, summary: str | None
) -> None:
    removed = frozenset(range(unread + read))
    plan = CompactionPlan(
        removed=removed, summary=summary, unread=len(removed) if summary is None else unread
    )
    assert plan.text is not None
    assert read_text(plan.text) == (plan.unread, summary)


def test_other_texts_are_not_taken_for_a_summary() -> None:
    assert read_text("[Summary of my week]") is None
    assert read_text("") is None


@given(st.data())
def test_results_of_all_kinds_keep_their_form_as_stubs(data: st.DataObject) -> None:
    items = data.draw(conversations())
    for item in filter(can_be_shortened, items):
        stub = stub_of(item)
        assert stub["type"] == item["type"]
        assert stub.get("call_id") == item.get("call_id")
        assert "tool result removed to save space" in str(stub["output"])


@settings(max_examples=15)
@given(st.lists(conversations(), min_size=1, max_size=4), st.sampled_from([300, 900, 3_000]))
async def test_between_two_steps_each_request_begins_with_the_one_before(
    parts: list[list[Any]], most: int
) -> None:
    model = Answering()
    compact = CompactHistory(most, on_too_long="send", keep_turns=3)
    agent = Agent("a", "Help.", model=model, middleware=[compact], tool_providers=None)
    steps: list[Any] = []
    conversation: list[Any] = []
    earlier: list[Any] = []
    with agent.subscribe(lambda event: steps.append(event) if event.type == "history_compacted" else None):
        for added in _turns_in(parts):
            conversation = [*conversation, *added]
            before, given = len(steps), copy.deepcopy(conversation)
            await agent.run_async(conversation)
            assert conversation == given
            sent = model.sent[-1]
            assert len(steps) <= before + 1
            if len(steps) == before:
                assert sent[: len(earlier)] == earlier
            earlier = sent
    again = len(model.calls)
    await agent.run_async(conversation)
    assert model.calls[again:][0].input == earlier  # nothing is summarized again


def _turns_in(parts: list[list[Any]]) -> Iterator[list[Any]]:
    """Yield the turns, with ids that no other turn has: the SDK sends items with the same id once."""
    names = ("id", "call_id", "approval_request_id")
    for number, part in enumerate(parts):
        for turn in turns_of(part):
            yield [
                {
                    name: f"{value}-{number}-{turn.start}" if name in names else value
                    for name, value in part[place].items()
                }
                for place in turn.places
            ]
