"""Turns: the smallest parts that can be omitted from a request.

A provider rejects a call without its result, a result without its call, and a reasoning item without its
successor. So a turn is a message of the user, or an answer with its tool results.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import attrs

from kantan_agents.core.items import CALL_OF, IN_ANSWER

Kind = Literal["user", "answer", "fixed"]

_CALLED = frozenset(CALL_OF.values())
_FIXED = frozenset({"compaction", "compaction_summary", "item_reference"})  # their content is unknown here
_INSTRUCTIONS = ("system", "developer")


@attrs.frozen
class ConversationTurn:
    """``items[start:stop]``, which belong together.

    ``"user"`` has a message of the user. ``"fixed"`` must stay: instructions, and calls or results without a
    counterpart.
    """

    start: int
    stop: int
    kind: Kind

    @property
    def places(self) -> range:
        """The indexes of its items."""
        return range(self.start, self.stop)


def turns_of(items: Sequence[Any]) -> list[ConversationTurn]:
    """Each item is in exactly one turn."""
    links, loose = _links(items)
    starts: list[int] = []
    is_open = False
    for place, item in enumerate(items):
        kind, role = _kind_and_role(item)
        if kind in CALL_OF and starts:
            is_open = is_open and kind in IN_ANSWER
            continue
        is_answer = kind != "message" or role == "assistant"
        if not (is_answer and is_open):
            starts.append(place)
        is_open = is_answer
    return [_turn(items, start, stop, loose) for start, stop in _merged(starts, len(items), links)]


def _kind_and_role(item: Any) -> tuple[str, str | None]:
    if not isinstance(item, Mapping):
        return "unknown", None
    role = item.get("role")
    kind = item.get("type") or ("message" if role is not None else "unknown")
    return str(kind), role


def _links(items: Sequence[Any]) -> tuple[list[tuple[int, int]], set[int]]:
    """Return calls with their results, and those without a counterpart."""
    # Some providers count call ids anew in each answer, so a result belongs to the oldest open call.
    waiting: dict[tuple[str, Any], list[int]] = defaultdict(list)
    links: list[tuple[int, int]] = []
    loose: set[int] = set()
    for place, item in enumerate(items):
        kind, _ = _kind_and_role(item)
        if kind in _CALLED:
            waiting[kind, _id_of_call(kind, item)].append(place)
        elif kind in CALL_OF:
            call = CALL_OF[kind]
            found = waiting.get((call, item.get("approval_request_id" if "approval" in kind else "call_id")))
            if found:
                links.append((found.pop(0), place))
            else:
                loose.add(place)
    return links, loose.union(*waiting.values())


def _id_of_call(kind: str, item: Any) -> Any:
    return item.get("id" if kind == "mcp_approval_request" else "call_id")


def _merged(starts: list[int], length: int, links: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge turns that a call and its result span."""
    reaches = dict(links)
    merged: list[tuple[int, int]] = []
    furthest = -1
    for start, stop in zip(starts, [*starts[1:], length], strict=False):
        if start <= furthest:
            merged[-1] = (merged[-1][0], stop)
        else:
            merged.append((start, stop))
        furthest = max([furthest, *(reaches[place] for place in range(start, stop) if place in reaches)])
    return merged


def _turn(items: Sequence[Any], start: int, stop: int, loose: set[int]) -> ConversationTurn:
    places = range(start, stop)
    kinds = [_kind_and_role(items[place]) for place in places]
    is_fixed = any(kind in _FIXED or kind == "unknown" or role in _INSTRUCTIONS for kind, role in kinds)
    if is_fixed or not loose.isdisjoint(places):
        return ConversationTurn(start, stop, "fixed")
    return ConversationTurn(start, stop, "user" if any(role == "user" for _, role in kinds) else "answer")
