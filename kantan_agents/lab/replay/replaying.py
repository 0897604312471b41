"""``replay``: replays a recorded run as a test of an agent."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, Final

import attrs
from agents import Runner

from kantan_agents.agent import Agent
from kantan_agents.agent.running.sync_of import sync_of
from kantan_agents.errors import NotReplayableError
from kantan_agents.lab.replay.checks import Checks
from kantan_agents.lab.replay.playback import StrictPlayback
from kantan_agents.lab.replay.provider_side import held_by_provider, hosted_work
from kantan_agents.lab.replay.recording import Recording
from kantan_agents.lab.replay.run_again import context_of, run_again, untraced
from kantan_agents.traces.capture import ModelCallRecord, RecordedError, RunRecord
from kantan_agents.traces.capture.playback import current_playback

__all__ = ["Replay", "StrictPlayback", "check_replayable", "replay", "replay_async"]


@attrs.frozen
class Replay:
    """A run that was replayed without a difference.

    Attributes:
        recording: The recording that was replayed.
        context: The context that the run returned; None if it failed as the recorded run did.
        error: The error of the run, the same as in the recorded run; None if the run has an answer.
    """

    recording: Recording
    context: dict[str, Any] | None
    error: Exception | None = None

    @property
    def output(self) -> Any:
        """The final output, in the type of the agent; None if the run failed."""
        result = None if self.context is None else self.context.get("result")
        return getattr(result, "final_output", result)


async def replay_async(
    recording: Recording | str | os.PathLike[str],
    agent: Agent[Any],
    *,
    ignore: str | Iterable[str] = (),
    match: str | Iterable[str] | None = None,
    accept: str | Iterable[str] = (),
    context: Mapping[str, Any] | None = None,
    traced: bool = False,
    **runner_options: Any,
) -> Replay:
    """Do the same as ``replay`` on the running event loop."""
    checks = Checks.of(ignore, match)
    if not isinstance(recording, Recording):
        recording = Recording.load(recording)
    check_replayable(recording, agent, accept)
    playback = StrictPlayback(recording, checks)
    if not traced:
        runner_options["run_config"] = untraced(runner_options.get("run_config"))
    token = current_playback.set(playback)
    try:
        given = context_of(recording.root, context)
        returned = await run_again(agent, recording.root, given, runner_options)
    except Exception as error:
        if playback.difference is not None:
            raise playback.difference from error
        playback.check_failure(error)
        return Replay(recording, None, error)
    finally:
        current_playback.reset(token)
    playback.check_success(returned)
    return Replay(recording, returned)


@sync_of(replay_async)
def replay() -> None:
    """Replay a recorded run and check that the agent sends its models the same requests.

        replay(Recording.load("tests/refund.json"), support_agent)

    The agent runs through its whole pipeline, with its middleware, rules and output types. The answers of
    models and results of tools come from the recording: no request leaves the process, and no tool runs.
    Each request is compared with the recorded one before it is answered. Your own code in middleware,
    renderers, guardrails and hooks does run.

    Args:
        recording: The recording, or the path of its file.
        agent: The current agent.
        ignore: Parts that may differ: ``"model"``, ``"instructions"``, ``"tools"``, ``"handoffs"``,
            ``"output"`` (the form of a structured output), ``"settings"``, ``"options"`` (other parts of a
            request), ``"input"`` (the conversation that is sent), ``"answer"`` (the final output),
            ``"error"`` (its class, and its code or else its message), ``"calls"`` (all recorded calls occur,
            and no others), ``"rules"`` (denied calls are denied again), or something in one of these, such
            as ``"settings.temperature"``, ``"tools.search.description"`` or ``"input[3]"``.
        match: The only parts that must be the same.
        accept: Work or data at a provider that is otherwise rejected: names of hosted tools, such as
            ``"web_search"``, and ``"previous_response_id"``, ``"conversation_id"`` or ``"prompt"``. The
            recorded answers are used unchanged.
        context: More values for the context, for your own code that reads them. The values that templates
            read are recorded.
        traced: Whether to trace the replayed run as this process traces its runs.
        **runner_options: More options for ``run_async`` than the recorded ones: ``run_config``, ``hooks``.

    Raises:
        ReplayDifferenceError: E92, the run differs from the recording. It is an ``AssertionError`` too;
            ``differences`` has every part that differs at that call.
        UnknownRecordedToolError: E96, ``tools`` may differ, but the agent lacks a tool that was called.
        NotReplayableError: E93, part of the run cannot be replayed.
        RecordingFileError: E91, the file is not a recording.
        InvalidOptionError: E75, an option is invalid.
        Exception: The agent's error, if the recorded run did not fail.

    Returns:
        The replayed run.
    """


_DEADLINE: Final = "E82"
_HELD: Final = {
    "previous_response_id": "the provider holds the conversation (previous_response_id) before",
    "conversation_id": "the provider holds the conversation (conversation_id) of",
    "prompt": "the provider holds the prompt of",
}


def check_replayable(recording: Recording, agent: Agent[Any], accept: str | Iterable[str] = ()) -> None:
    """Raise E93 if a recording cannot be replayed."""
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
