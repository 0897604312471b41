"""Plans of a replayed run, which may depend on earlier runs, which are not replayed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from kantan_agents.agent.bridge.captured.request_data import plain_request_data
from kantan_agents.agent.bridge.model_calls import target_of
from kantan_agents.core.interception import ModelCall
from kantan_agents.middleware.compact_history.plan import CompactionPlan, read_text
from kantan_agents.middleware.compact_history.tool_results import can_be_shortened
from kantan_agents.models.structured.requests.request import Request
from kantan_agents.support.secrets import mask
from kantan_agents.traces.capture import RunRecord
from kantan_agents.traces.capture.canonical import canonical
from kantan_agents.traces.recorder.masking import mask_data


@attrs.frozen
class RecordedPlan:
    """A recorded plan; ``was_asked`` if a summary was, or may have been, written for it."""

    plan: CompactionPlan
    was_asked: bool


class RecordedPlans:
    """The plans of a recorded run, in order."""

    def __init__(self, record: RunRecord) -> None:
        self._record = record
        self._next: dict[str, int] = {}

    def find(self, call: ModelCall, items: Sequence[Any], *, by_agent: bool) -> RecordedPlan | None:
        """Return the plan of the recorded call that this one repeats, if any.

        With ``by_agent``, an agent summarizes, whose runs are recorded separately.
        """
        now = [canonical(item) for item in _as_recorded(call, items)]
        was_asked = by_agent and bool(self._record.inner_runs)
        calls = self._record.model_calls
        for place in range(self._next.get(call.agent, 0), len(calls)):
            if calls[place].agent != call.agent:
                continue
            if calls[place].is_internal:
                was_asked = True
                continue
            plan = plan_between(items, now, calls[place].request.input)
            if plan is not None:
                self._next[call.agent] = place + 1
                return RecordedPlan(plan, was_asked)
        return None


def _as_recorded(call: ModelCall, items: Sequence[Any]) -> list[Any]:
    request = Request(None, [*items], call.settings, [], call.options)
    data = plain_request_data(call, request, target_of(call))
    masked: list[Any] = mask_data({"input": data["input"]}, mask)["input"]
    return masked


def plan_between(items: Sequence[Any], whole: Sequence[bytes], sent: Any) -> CompactionPlan | None:
    """Return the plan that turns a conversation into the recorded request, if any."""
    if isinstance(sent, str) or sent is None:
        return None
    recorded = [canonical(item) for item in sent]
    notes = (place for place, item in enumerate(sent) if _note(item) and recorded[place] not in whole[place:])
    first = next(notes, len(sent))

    def is_sent_as(place: int, at: int) -> bool:
        return recorded[at] == whole[place] or _is_shorter(sent[at], items[place])

    # Backwards, because the oldest items are removed: of equal items, the last ones were sent.
    places = {at: at for at in range(min(first, len(items)))}
    place = len(items)
    for at in range(len(sent) - 1, first, -1):
        place -= 1
        while place >= first and not is_sent_as(place, at):
            place -= 1
        places[at] = place
    removed = frozenset(range(len(items))).difference(places.values())
    read = _note(sent[first]) if first < len(sent) else None
    # The note replaces the first omitted item.
    if len(places) + (read is not None) != len(sent) or min(removed, default=-1) != (first if read else -1):
        return None
    if not all(place >= 0 and is_sent_as(place, at) for at, place in places.items()):
        return None
    replaced = {place: sent[at] for at, place in places.items() if recorded[at] != whole[place]}
    unread, summary = read or (0, None)
    return CompactionPlan(replaced, removed, summary, unread)


def _note(item: Any) -> tuple[int, str | None] | None:
    if not isinstance(item, Mapping) or item.get("role") != "user" or not isinstance(item["content"], str):
        return None
    return read_text(item["content"])


def _is_shorter(item: Any, whole: Any) -> bool:
    return (
        can_be_shortened(whole)
        and isinstance(item, Mapping)
        and all(item.get(name) == whole.get(name) for name in ("type", "call_id"))
        and "removed" in str(item.get("output"))
    )
