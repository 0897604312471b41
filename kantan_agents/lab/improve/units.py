"""Determines which recorded runs are independent."""

from __future__ import annotations

from collections.abc import Iterable

from kantan_agents.lab.evaluation.dataset import Case
from kantan_agents.lab.experiment.identity import plain
from kantan_agents.traces.capture.canonical import content_hash


def units_of_cases(cases: Iterable[Case]) -> dict[str, str]:
    """Return the sampling unit of each case: the user messages and the context of its conversation.

    Cases with the same one are not independent: better answers to two questions, recorded ten times each,
    prove nothing about a third.
    """
    conversations: dict[str, list[Case]] = {}
    for case in cases:
        conversations.setdefault(case.conversation or f"case {case.id}", []).append(case)
    return {case.id: _asked(members) for members in conversations.values() for case in members}


def _asked(cases: list[Case]) -> str:
    """Return a hash of a conversation's user messages; its longest case repeats the others."""
    last = max(cases, key=lambda case: 1 if isinstance(case.whole_input, str) else len(case.whole_input))
    items = last.whole_input
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    users = [plain(item) for item in items if item.get("role") == "user"]
    return content_hash([users or plain(items), plain(last.context)])
