"""Decides whether a recorded run can be replayed at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from agents import Runner

from kantan_agents.agent import Agent
from kantan_agents.capture import RecordedError, RunRecord
from kantan_agents.errors import NotReplayableError
from kantan_agents.replay.recording import Recording

_DEADLINE: Final = "E82"


def check_replayable(recording: Recording, agent: Agent[Any]) -> None:
    """Check that nothing is in the way of a replay.

    Raises:
        NotReplayableError: E93, there is.
    """
    found = [reason for run in recording.runs for reason in _reasons(run)]
    if agent.runner is not Runner:
        found.append(f"the agent {agent.name!r} has a runner of its own ({agent.runner!r})")
    if found:
        raise NotReplayableError(trace_id=recording.trace_id, reason=found[0])


def _reasons(run: RunRecord) -> Iterator[str]:
    if run.error is not None and run.error.code == _DEADLINE:
        yield f"the deadline of the run of {run.agent!r} expired, at a moment that cannot be repeated"
    if run.outcome == "cancelled":
        yield f"the run of {run.agent!r} was cancelled, at a moment that cannot be repeated"
    if run.outcome == "stopped":
        yield f"the reader of its stream ended the run of {run.agent!r}, at a moment that cannot be repeated"
    for call in run.model_calls:
        if any(tool.kind == "computer" for tool in call.request.tools):
            yield f"{call.agent!r} has a computer tool, whose screen is not recorded"
        if _is_cancelled(call.error):
            yield f"a model call of {call.agent!r} was cancelled, at a moment that cannot be repeated"
        elif call.broke_off:
            yield f"an answer to {call.agent!r} broke off, and the part that was streamed is not recorded"
    for tool_call in run.tool_calls:
        if _is_cancelled(tool_call.failure) or _is_cancelled(tool_call.error):
            name = tool_call.tool.name
            yield f"a call of the tool {name!r} was cancelled or timed out, which cannot be repeated"


def _is_cancelled(error: RecordedError | None) -> bool:
    return error is not None and error.type == "CancelledError"
