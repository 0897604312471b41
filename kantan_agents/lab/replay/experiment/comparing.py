"""Compares a run with the recorded one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kantan_agents.errors import code_of
from kantan_agents.lab.replay.answers_from_recording import plain_arguments
from kantan_agents.lab.replay.experiment.outcome import ChangedDecision, DecisionKind
from kantan_agents.lab.replay.experiment.repetition import SeenEvents
from kantan_agents.lab.replay.recording import Recording
from kantan_agents.support.secrets import mask
from kantan_agents.traces.capture import RunRecord
from kantan_agents.traces.capture.canonical import canonical

Decision = tuple[DecisionKind, str, str, bytes]
"""Kind, agent, name, and canonical arguments."""


def changed_decisions(recording: Recording, seen: SeenEvents) -> list[ChangedDecision]:
    """Return the decisions, in any order, that only one of the two runs made."""
    before, after = Counter(_recorded_decisions(recording, seen)), Counter(_seen_decisions(seen))
    found = [ChangedDecision(*one[:3], _shown(one), None) for one in (before - after).elements()]
    return found + [ChangedDecision(*one[:3], None, _shown(one)) for one in (after - before).elements()]


def _shown(decision: Decision) -> str:
    return decision[3].decode("utf-8", "replace")


def runs_replayed(recording: Recording, seen: SeenEvents) -> Sequence[RunRecord]:
    """Return the recorded runs except those inside tools that are not run."""
    left_out: set[str] = set()
    for run in recording.runs[1:]:
        if run.parent_call in seen.played or run.parent_run in left_out:
            left_out.add(run.id)
    return [run for run in recording.runs if run.id not in left_out]


def _recorded_decisions(recording: Recording, seen: SeenEvents) -> Iterator[Decision]:
    # Events of a call lack its arguments if the model was not shown the tool.
    hidden = {call.tool for call in seen.tool_calls if not call.arguments}
    for run in runs_replayed(recording, seen):
        for call in run.tool_calls:
            refusal = _recorded_refusal(call)
            is_hidden = refusal is not None and call.tool.name in hidden
            arguments = plain_arguments("" if is_hidden else call.arguments)
            yield ("tool call", call.agent, call.tool.name, arguments)
            if refusal is not None:
                yield ("denial", call.agent, call.tool.name, refusal)
        for asked in run.model_calls:
            if asked.parent_call is not None:
                continue  # in an agent that is a tool, whose handoffs the SDK does not report
            names = {one.name: one.options.get("agent", one.name) for one in asked.request.handoffs}
            items = () if asked.answer is None or asked.is_internal else asked.answer.output
            chosen = [item["name"] for item in items if item.get("name") in names]
            if chosen:  # the SDK takes the first
                yield ("hand-off", asked.agent, str(names[str(chosen[0])]), b"")


def _recorded_refusal(call: Any) -> bytes | None:
    if call.decision is not None and not call.decision.is_allowed:
        return str(call.decision.code or "").encode()
    if call.error is not None and call.error.code == "E21":
        return b"E21"
    return None


def _seen_decisions(seen: SeenEvents) -> Iterator[Decision]:
    for call in seen.tool_calls:
        code = seen.refusals.get((call.run_id, call.call_id))
        yield ("tool call", call.agent, call.tool, plain_arguments(str(mask(call.arguments))))
        if code is not None:
            yield ("denial", call.agent, call.tool, code.encode())
    for handoff in seen.handoffs:
        yield ("hand-off", handoff.agent, handoff.to_agent, b"")


def changed_fields(agent: str, before: Any, after: Any) -> list[ChangedDecision]:
    """Return the fields that differ between two outputs; a list is one field."""
    return [ChangedDecision("field", agent, path, *values) for path, values in _fields("", before, after)]


def _fields(path: str, before: Any, after: Any) -> Iterator[tuple[str, tuple[Any, Any]]]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in dict.fromkeys((*before, *after)):
            yield from _fields(f"{path}.{name}" if path else str(name), before.get(name), after.get(name))
    elif canonical(before) != canonical(after):
        yield path, (before, after)


def is_wording(before: Any, after: Any) -> bool:
    """Return whether outputs can differ only in wording."""
    return isinstance(before, str) and isinstance(after, str)


def same_failure(recorded: RunRecord, error: BaseException) -> bool:
    """Return whether an error equals the recorded one."""
    before = recorded.error
    names = (type(error).__name__, getattr(error, "type_name", ""))
    return before is not None and before.type in names and before.code == code_of(error)
