"""Decides which parts are omitted, the least harmful first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from kantan_agents.middleware.compact_history.plan import NOTICE, CompactionPlan
from kantan_agents.middleware.compact_history.tokens import tokens_of_item, tokens_of_text
from kantan_agents.middleware.compact_history.tool_results import can_be_shortened, cut_item, stub_of
from kantan_agents.middleware.compact_history.turns import ConversationTurn, turns_of

_SHARE_OF_SUMMARY = 8
_LEAST_SUMMARY, _MOST_SUMMARY = 64, 1_500

_LEAST_SAVED = 8  # tokens; a result that is hardly longer than its stub stays
_LEAST_KEPT = 100  # tokens that a cut result keeps
_TRIES = 5
_LEAST_STEP = 0.05  # of the limit; less would change the prefix of each request and save next to nothing
_NOTE = tokens_of_text(NOTICE.format(count=1_000)) + 8


@attrs.frozen
class TokenLimits:
    """Limits in tokens: shortened from ``begin``, to ``target`` if possible, never above ``most``."""

    most: int
    begin: int
    target: int
    keep_turns: int
    keep_first: bool

    @property
    def summary(self) -> int:
        """Maximum tokens of a summary."""
        return min(max(self.target // _SHARE_OF_SUMMARY, _LEAST_SUMMARY), _MOST_SUMMARY)


@attrs.frozen
class Conversation:
    """Items with their estimated tokens."""

    items: Sequence[Any]
    sizes: Sequence[int]

    @classmethod
    def of(cls, items: Sequence[Any]) -> Conversation:
        """Return the conversation of these items."""
        return cls(items, [tokens_of_item(item) for item in items])

    def size(self, plan: CompactionPlan) -> int:
        """Estimate the tokens under a plan."""
        saved = sum(self.sizes[place] for place in plan.removed)
        saved += sum(
            self.sizes[place] - tokens_of_item(item)
            for place, item in plan.replaced.items()
            if place not in plan.removed
        )
        note = plan.note
        return sum(self.sizes) - saved + (0 if note is None else tokens_of_item(note))


def shortened(
    conversation: Conversation,
    before: CompactionPlan,
    limits: TokenLimits,
    *,
    size: float,
    ratio: float,
    summarizes: bool,
) -> CompactionPlan:
    """Return a plan for a conversation that has become too long, or the plan before if little can be saved.

    ``ratio`` is counted tokens for each estimated one.
    """
    draft = _Draft(conversation, before, limits, size, ratio, limits.summary if summarizes else 0)
    draft.cut_giants()
    draft.stub_old_results()
    draft.remove_old_turns()
    if draft.size > limits.begin:
        draft.cut_newest_results()
    least = _LEAST_STEP * limits.most if draft.size > limits.target else 0
    if size <= limits.most and size - draft.size <= least:
        return before
    return draft.plan()


class _Draft:
    """A plan in progress."""

    def __init__(
        self,
        conversation: Conversation,
        before: CompactionPlan,
        limits: TokenLimits,
        size: float,
        ratio: float,
        summary: int,
    ) -> None:
        self._conversation = conversation
        self._before = before
        self._limits = limits
        self._ratio = ratio
        self._summary = summary
        self._replaced = dict(before.replaced)
        self._removed = set(before.removed)
        self._turns = turns_of(conversation.items)
        self._newest = _newest_turns(self._turns, limits.keep_turns)
        self.size = size

    def plan(self) -> CompactionPlan:
        unread = self._before.unread + len(self._removed) - len(self._before.removed)
        replaced = {place: item for place, item in self._replaced.items() if place not in self._removed}
        return CompactionPlan(replaced, frozenset(self._removed), self._before.summary, unread)

    def _size_of(self, place: int) -> int:
        changed = self._replaced.get(place)
        return self._conversation.sizes[place] if changed is None else tokens_of_item(changed)

    def _replace(self, place: int, item: Any) -> None:
        self.size -= self._ratio * (self._size_of(place) - tokens_of_item(item))
        self._replaced[place] = item

    def _results(self, turns: Iterable[ConversationTurn]) -> list[int]:
        items = self._conversation.items
        places = (place for turn in turns for place in turn.places)
        return [place for place in places if place not in self._removed and can_be_shortened(items[place])]

    def cut_giants(self) -> None:
        """Cut results that alone exceed the maximum."""
        if self.size <= self._limits.target:
            return
        for place in self._results(self._newest):
            self._cut(place, self._limits.most, self._limits.target // 4)

    def _cut(self, place: int, longest: float, wanted: float) -> None:
        whole = self._ratio * self._conversation.sizes[place]
        if self._ratio * self._size_of(place) <= longest or whole <= 0:
            return
        share = wanted / whole
        for _ in range(_TRIES):  # its start and end may have more tokens than the rest
            shorter = cut_item(self._conversation.items[place], share)
            size = self._ratio * tokens_of_item(shorter)
            if size <= wanted:
                break
            share *= 0.95 * wanted / size
        if tokens_of_item(shorter) < self._size_of(place):
            self._replace(place, shorter)

    def stub_old_results(self) -> None:
        """The oldest first, until the target is reached."""
        newest = set(self._newest)
        old = [turn for turn in self._turns if turn not in newest and turn.kind != "fixed"]
        for place in self._results(old):
            if self.size <= self._limits.target:
                return
            stub = stub_of(self._conversation.items[place])
            if self._size_of(place) - tokens_of_item(stub) >= _LEAST_SAVED:
                self._replace(place, stub)

    def remove_old_turns(self) -> None:
        """The oldest first, until the rest and their summary fit the target."""
        if self.size <= self._limits.target:
            return
        taken: list[int] = []
        before = self._before.note
        space = 0 if before is None else tokens_of_item(before)
        # Both notes are sent if a part could not be summarized.
        saved = space - self._summary - 2 * _NOTE
        for turn in self._middle():
            if self.size - self._ratio * max(saved, 0) <= self._limits.target:
                break
            taken += turn.places
            saved += sum(self._size_of(place) for place in turn.places)
        if saved > 0:
            self.size -= self._ratio * saved
            self._removed.update(taken)

    def _middle(self) -> list[ConversationTurn]:
        turns = self._turns
        kept = set(self._newest)
        if self._limits.keep_first:
            kept.update([turn for turn in turns if turn.kind == "user"][:1])
        return [
            turn
            for turn in turns
            if turn not in kept and turn.kind != "fixed" and turn.start not in self._removed
        ]

    def cut_newest_results(self) -> None:
        """Cut the longest results to a common length, down to the target."""
        places = self._results(self._turns)
        sizes = {place: self._ratio * self._size_of(place) for place in places}
        longest = _common_length(list(sizes.values()), self.size - self._limits.target)
        for place in places:
            self._cut(place, max(longest, _LEAST_KEPT), max(longest, _LEAST_KEPT))


def _newest_turns(turns: Sequence[ConversationTurn], count: int) -> list[ConversationTurn]:
    """Includes the user's latest turn, even if it is older."""
    newest = list(turns[len(turns) - count :] if count < len(turns) else turns)
    if not any(turn.kind == "user" for turn in newest):
        newest = [turn for turn in turns if turn.kind == "user"][-1:] + newest
    return newest


def _common_length(sizes: list[float], needed: float) -> float:
    """Return the length to which sizes must be cut."""
    sizes = sorted(sizes, reverse=True)
    total = 0.0
    for count, size in enumerate(sizes, 1):
        total += size
        length = (total - needed) / count
        if length >= (sizes[count] if count < len(sizes) else 0):
            return max(length, 0.0)
    return 0.0
