"""Decides whether a recorded run can be replayed at all."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Any, Final

from agents import Runner

from kantan_agents.agent import Agent
from kantan_agents.errors import NotReplayableError
from kantan_agents.lab.replay.provider_side import held_by_provider, hosted_work
from kantan_agents.lab.replay.recording import Recording
from kantan_agents.traces.capture import ModelCallRecord, RecordedError, RunRecord

_DEADLINE: Final = "E82"
_HELD: Final = {
    "previous_response_id": "the provider holds the conversation (previous_response_id) before",
    "conversation_id": "the provider holds the conversation (conversation_id) of",
    "prompt": "the provider holds the prompt of",
}


def check_replayable(recording: Recording, agent: Agent[Any], accept: str | Iterable[str] = ()) -> None:
    """Check that nothing is in the way of a replay.

    Args:
        recording: What is to be replayed.
        agent: The agent that is to replay it.
        accept: What the provider has done or holds, and is accepted as recorded: names of hosted tools,
            ``"previous_response_id"``, ``"conversation_id"`` or ``"prompt"``.

    Raises:
        NotReplayableError: E93, there is.
    """
    accepted = (accept,) if isinstance(accept, str) else tuple(accept)
    found = [reason for run in recording.runs for reason in _reasons(run, accepted)]
    if agent.runner is not Runner:
        found.append(f"the agent {agent.name!r} has a runner of its own ({agent.runner!r})")
    if found:
        raise NotReplayableError(trace_id=recording.trace_id, reason=found[0])


def _reasons(run: RunRecord, accepted: Container[str]) -> Iterator[str]:
    if run.error is not None and run.error.code == _DEADLINE:
        yield f"the deadline of the run of {run.agent!r} expired, at a moment that cannot be repeated"
    if run.outcome == "cancelled":
        yield f"the run of {run.agent!r} was cancelled, at a moment that cannot be repeated"
    if run.outcome == "stopped":
        yield f"the reader of its stream ended the run of {run.agent!r}, at a moment that cannot be repeated"
    for call in run.model_calls:
        yield from _reasons_of_call(call)
    yield from _provider_reasons(run, accepted)
    for tool_call in run.tool_calls:
        if _is_cancelled(tool_call.failure) or _is_cancelled(tool_call.error):
            name = tool_call.tool.name
            yield f"a call of the tool {name!r} was cancelled or timed out, which cannot be repeated"


def _reasons_of_call(call: ModelCallRecord) -> Iterator[str]:
    if any(tool.kind == "computer" for tool in call.request.tools):
        yield f"{call.agent!r} has a computer tool, whose screen is not recorded"
    if _is_cancelled(call.error) and not call.is_superseded:
        yield f"a model call of {call.agent!r} was cancelled, at a moment that cannot be repeated"
    elif call.broke_off:
        yield f"an answer to {call.agent!r} broke off, and the part that was streamed is not recorded"


def _provider_reasons(run: RunRecord, accepted: Container[str]) -> Iterator[str]:
    for number, call in enumerate(run.model_calls, start=1):
        place = f"model call {number} of {call.agent!r}"
        found = [(name, _HELD[name]) for name in held_by_provider(call.request.options)]
        found += [(name, f"the hosted tool {name!r} ran at the provider in") for name in hosted_work(call)]
        for name, what in found:
            if name not in accepted:
                yield f"{what} {place}; accept={name!r} takes the recorded answer as it is"


def _is_cancelled(error: RecordedError | None) -> bool:
    return error is not None and error.type == "CancelledError"
