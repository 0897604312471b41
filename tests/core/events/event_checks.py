"""Checks of invariants that hold for the events of every run."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

import jsonschema_rs

from kantan_agents import Event
from kantan_agents.core.events import (
    ModelCallFinished,
    ModelCallStarted,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunStarted,
    StageEntered,
    StageLeft,
    TextDelta,
    ToolCallDenied,
    ToolCallFinished,
    ToolCallStarted,
    event_schema,
)

ENDS = (RunFinished, RunFailed, RunCancelled)
SCHEMA = jsonschema_rs.validator_for(event_schema())


def check_whole(events: list[Event]) -> None:
    """Assert that a list contains all events of a run and its nested runs in a valid order."""
    runs: dict[str, list[Event]] = {}
    for event in events:
        runs.setdefault(event.run_id, []).append(event)
        check_json(event)
    for of_run in runs.values():
        check_run(of_run)
    for parent, of_run in ((of_run[0].parent_run_id, of_run) for of_run in runs.values()):
        if parent in runs:  # a nested run lies between the first and the last event of its parent
            assert events.index(runs[parent][0]) < events.index(of_run[0])
            assert events.index(of_run[-1]) < events.index(runs[parent][-1])


def check_run(events: list[Event]) -> None:
    """Assert that every start in one run has exactly one end, in nested order."""
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    assert isinstance(events[0], RunStarted)
    assert isinstance(events[-1], ENDS)
    assert sum(isinstance(event, (RunStarted, *ENDS)) for event in events) == 2
    stages: list[str] = []
    opened: dict[str, str] = {}
    seen: list[str] = []
    for event in events:
        if isinstance(event, StageEntered):
            stages.append(event.stage)
        elif isinstance(event, StageLeft):
            assert stages.pop() == event.stage
            if event.stage == "call_sdk":
                assert opened == {}
        elif isinstance(event, (ModelCallStarted, ToolCallStarted)):
            assert event.call_id not in seen
            assert stages[-1] == "call_sdk"
            seen.append(event.call_id)
            opened[event.call_id] = event.agent
        elif isinstance(event, (ModelCallFinished, ToolCallFinished, ToolCallDenied)):
            assert opened.pop(event.call_id) == event.agent
        elif isinstance(event, TextDelta):
            assert (
                event.call_id in opened or event.call_id not in seen
            )  # a middleware may have answered without a call
    assert (stages, opened) == ([], {})


def check_json(event: Event) -> None:
    """Assert that an event matches its schema and that its JSON is complete."""
    text = event.to_json()
    assert "\n" not in text
    data = json.loads(text)
    SCHEMA.validate(data)
    assert data == event.to_dict()
    assert datetime.fromisoformat(data["time"]) == event.time
    assert event.time.tzinfo is timezone.utc


def shapes(events: list[Event]) -> list[tuple[Any, ...]]:
    """Return the events without the values that differ from run to run."""
    names = {run_id: number for number, run_id in enumerate(dict.fromkeys(e.run_id for e in events))}
    left_out = ("run_id", "parent_run_id", "sequence", "time", "seconds", "trace_id", "child_run_id")
    return [
        (names[event.run_id], *((k, str(v)) for k, v in event.to_dict().items() if k not in left_out))
        for event in events
    ]
