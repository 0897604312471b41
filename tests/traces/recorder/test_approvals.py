"""Calls that wait for a person, or that one has refused, are recorded without the SDK's objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from agents import function_tool

from kantan_agents import Agent, SQLiteRecorder
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from tests.traces.recorder.database_file import DatabaseFile

RecorderAt = Callable[..., SQLiteRecorder]


@function_tool(needs_approval=True)
def remove(path: str) -> str:
    """Remove a file."""
    return f"removed {path}"


def kept_whole(exported: dict[str, Any]) -> dict[str, Any]:
    return exported


def outputs(file: DatabaseFile) -> list[str | None]:
    """Return the outputs of the tool's spans, the oldest first."""
    spans = sorted(file.spans(), key=lambda span: span.ingest_seq)
    return [span.output for span in spans if span.span_type == "function"]


@pytest.mark.parametrize("redact", [None, kept_whole])
@pytest.mark.parametrize(
    ("is_approved", "expected"),
    [(True, [None, "removed a.txt"]), (False, [None])],
)
async def test_a_paused_call_has_no_output_until_a_person_has_decided(
    recorder_at: RecorderAt, file: DatabaseFile, redact: Any, is_approved: bool, expected: list[str | None]
) -> None:
    recorder = recorder_at(file.path, redact=redact)
    script = [[function_call("remove", {"path": "a.txt"}, call_id="c")], [assistant_message("Done.")]]
    agent = Agent("clerk", "Tidy up.", model=ScriptedModel(script), tools=[remove])
    context = await agent.run_async("Remove a.txt")
    state = context["result"].to_state()
    (waiting,) = state.get_interruptions()
    if is_approved:
        state.approve(waiting)
    else:
        state.reject(waiting, rejection_message="Not this one.")
    await agent.run_async(state, context)
    assert recorder.force_flush(10)
    assert outputs(file) == expected
