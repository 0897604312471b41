"""In a replay, the plans of the recorded run: they may depend on earlier runs, which are not replayed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from kantan_agents.bridge.captured.request import plain_request_data
from kantan_agents.bridge.model_calls import target_of
from kantan_agents.capture import RunRecord
from kantan_agents.capture.canonical import canonical
from kantan_agents.interception import ModelCall
from kantan_agents.middleware.compact_history.plan import Plan, read_text
from kantan_agents.middleware.compact_history.results import can_be_shortened
from kantan_agents.structured.requests.request import Request
from kantan_agents.support.secrets import mask
from kantan_agents.tracing.recorder.masking import mask_data


@attrs.frozen
class Found:
    """The plan of a recorded model call.

    Attributes:
        plan: The plan.
        was_asked: Whether something was summarised for this call, or may have been.
    """

    plan: Plan
    was_asked: bool


class RecordedPlans:
    """Finds the plans of the model calls of a recorded run, in order.

    Args:
        record: The recorded run.
    """

    def __init__(self, record: RunRecord) -> None:
        self._record = record
        self._next: dict[str, int] = {}

    def find(self, call: ModelCall, items: Sequence[Any], *, by_agent: bool) -> Found | None:
        """Return the plan of the recorded call that this one repeats; None if there is no such call.

        Args:
            call: The call.
            items: The whole conversation.
            by_agent: Whether an agent summarises, whose runs are recorded on their own.
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
                return Found(plan, was_asked)
        return None


def _as_recorded(call: ModelCall, items: Sequence[Any]) -> list[Any]:
    request = Request(None, [*items], call.settings, [], call.options)
    data = plain_request_data(call, request, target_of(call))
    masked: list[Any] = mask_data({"input": data["input"]}, mask)["input"]
    return masked


def plan_between(items: Sequence[Any], whole: Sequence[bytes], sent: Any) -> Plan | None:
    """Return the plan under which a conversation was sent as it was recorded; None if it was another one.

    Args:
        items: The items of the conversation.
        whole: The same as they would be recorded.
        sent: The items that were recorded.
    """
    if isinstance(sent, str) or sent is None:
        return None
    replaced: dict[int, Any] = {}
    removed: set[int] = set()
    place = 0
    read: tuple[int, str | None] | None = None
    for item in sent:
        recorded = canonical(item)
        is_new = read is None and place < len(whole) and recorded != whole[place]
        note = _note(item) if is_new else None
        if note is not None:
            read = note
            removed.add(place)  # it is in the place of the first item that was left out
            place += 1
            continue
        left_out = place
        while place < len(whole) and recorded != whole[place] and not _is_shorter(item, items[place]):
            place += 1
        if place == len(whole) or (place > left_out and read is None):
            return None
        removed.update(range(left_out, place))
        if recorded != whole[place]:
            replaced[place] = item
        place += 1
    if place < len(whole) or (read is None) != (not removed):
        return None
    unread, summary = read or (0, None)
    return Plan(replaced, frozenset(removed), summary, unread)


def _note(item: Any) -> tuple[int, str | None] | None:
    if not isinstance(item, Mapping) or item.get("role") != "user" or not isinstance(item["content"], str):
        return None
    return read_text(item["content"])


def _is_shorter(item: Any, whole: Any) -> bool:
    """Return whether a recorded item may be a result that was shortened."""
    return (
        can_be_shortened(whole)
        and isinstance(item, Mapping)
        and all(item.get(name) == whole.get(name) for name in ("type", "call_id"))
        and "removed" in str(item.get("output"))
    )
