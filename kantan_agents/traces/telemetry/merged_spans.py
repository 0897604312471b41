"""Decides which SDK spans become part of the span around them."""

from __future__ import annotations

from typing import Any

from kantan_agents.core.answers import CUT_SPAN
from kantan_agents.core.interception import active_sdk_agent
from kantan_agents.core.pipeline import current_run
from kantan_agents.traces.final_span import GenerationSpanData
from kantan_agents.traces.metadata import JUDGE_SPAN, REFUSAL_SPAN, RUN_SPAN, STOP_SPAN
from kantan_agents.traces.telemetry import conventions as names
from kantan_agents.traces.telemetry.open_spans import Open

_PARTS = frozenset({"task", "turn", "handoff"})
_NOTES = frozenset({REFUSAL_SPAN, JUDGE_SPAN, STOP_SPAN, CUT_SPAN})


def part_of(span: Any, parent: Open | None) -> Open | None:
    """Return the open span to join; None for a separate span."""
    if parent is None:
        return None
    kind = span.span_data.type
    if kind in _PARTS:
        return parent
    check = _CHECKS.get(kind)
    return parent if check is not None and check(span.span_data, parent) else None


def _joins_run(data: Any, parent: Open) -> bool:
    if parent.operation != names.INVOKE_AGENT or parent.folded or data.name != parent.begins_with:
        return False
    parent.folded = True
    return True


def _is_of_run_or_call(data: Any, parent: Open) -> bool:
    """Return whether it has the run's input and answer, or is inside a middleware's call."""
    return isinstance(data, GenerationSpanData) or parent.operation == names.CHAT


def _is_of_call(_data: Any, parent: Open) -> bool:
    return parent.operation == names.CHAT


def _is_note(data: Any, _parent: Open) -> bool:
    return data.name in _NOTES or is_of_target(data)


_CHECKS = {
    "agent": _joins_run,
    "generation": _is_of_run_or_call,
    "response": _is_of_call,
    "custom": _is_note,
}


def is_of_target(data: Any) -> bool:
    """Return whether an ``agent_run`` span belongs to a handoff target."""
    if data.type != "custom" or data.name != RUN_SPAN:
        return False
    run = current_run.get()
    return run is None or data.data is not run.metadata


def is_around_call(data: Any) -> bool:
    """Return whether a ``generation`` span is a middleware's: it has the agent's name."""
    agent = active_sdk_agent.get()
    return agent is not None and data.model == agent.name and data.model_config is None
