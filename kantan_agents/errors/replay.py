"""E90 to E98: recordings and replays."""

from __future__ import annotations

from typing import Any

from kantan_agents.errors.root import KantanAgentsError


class IncompleteRecordError(KantanAgentsError):
    """A run is not recorded completely, so it cannot be run again.

    It was recorded with ``record_requests=False`` or by another tracer, its process was killed, or a part
    could not be recorded.

    Fix: Record the run again.

    Attributes:
        trace_id: Id of the trace.
        reason: What is missing.
    """

    code = "E90"
    is_bad_input = True
    template = "The trace {trace_id} cannot be replayed, its record is not complete: {reason}"
    trace_id: str
    reason: str


class RecordingFileError(KantanAgentsError):
    """A file is missing, damaged, or not a recording that this version can read.

    Fix: ``kantan-agents traces save`` writes the file of a run.

    Attributes:
        path: The file.
        reason: What is wrong with it, and what to do.
    """

    code = "E91"
    is_bad_input = True
    template = "Not a recording: {path}: {reason}"
    path: str
    reason: str


class ReplayDifferenceError(KantanAgentsError, AssertionError):
    """A replayed run differs from the recording. In pytest, it is a failed assertion.

    Fix: If you want the change, record the run again with ``--update-recordings``, or name the part in
    ``ignore``.

    Attributes:
        place: The call where it happened, such as ``"model call 2 of 'support'"``.
        part: The part that differs, such as ``"instructions"`` or ``"tools.look.description"``.
        diff: The lines that differ.
        differences: All parts that differ there.
    """

    code = "E92"
    template = "The replay differs from the recording at {place}: {part}"
    place: str
    part: str
    diff: str
    differences: tuple[Any, ...]

    def __init__(self, **data: Any) -> None:
        super().__init__(**data)
        self.args = (f"{self}\n{self.diff}",)


class NotReplayableError(KantanAgentsError):
    """A run depends on something that cannot be repeated, or the trace has several runs.

    Fix: Name data that only the provider has, such as a hosted tool, in ``accept``.

    Attributes:
        trace_id: Id of the trace.
        reason: What it is.
    """

    code = "E93"
    is_bad_input = True
    template = "The trace {trace_id} cannot be replayed: {reason}"
    trace_id: str
    reason: str


class InvalidChangeError(KantanAgentsError):
    """A change cannot be made to an agent.

    Attributes:
        change: The change, such as ``"tool 'search'"``.
        reason: What is wrong with it, and what to do.
    """

    code = "E94"
    is_bad_input = True
    template = "The change of {change} cannot be made: {reason}"
    change: str
    reason: str


class NoChangeError(KantanAgentsError):
    """The agent, or every recorded run, has this prompt, model, setting, rule or definition already.

    Fix: Change something else.

    Attributes:
        change: The change, such as ``"settings.temperature"``.
        reason: What is the same.
    """

    code = "E95"
    is_bad_input = True
    template = "The change of {change} changes nothing: {reason}"
    change: str
    reason: str


class UnknownRecordedToolError(KantanAgentsError):
    """The agent lacks a tool that the recorded run has called.

    Attributes:
        tool_name: Name of the tool.
        agent: Name of the agent.
    """

    code = "E96"
    is_bad_input = True
    template = (
        "The agent {agent!r} has no tool {tool_name!r}, which the recorded run has called: give it the tool, "
        "or record the run again"
    )
    tool_name: str
    agent: str


class EmptyCohortError(KantanAgentsError):
    """No trace passes the filters, or none of them can be replayed.

    Fix: Try the filters in ``kantan-agents traces list``; ``reason`` names the first obstacle.

    Attributes:
        reason: Why not, and what to do.
    """

    code = "E97"
    is_bad_input = True
    template = "The cohort is empty: {reason}"
    reason: str


class ReplayBudgetError(KantanAgentsError):
    """The replay of a cohort would exceed ``max_tokens`` or ``max_cost``, or has reached it.

    Fix: Take a smaller sample, or raise the limit. Finished runs are stored.

    Attributes:
        reason: What it would cost, estimated from the recorded runs, and what it may.
    """

    code = "E98"
    is_bad_input = True
    template = "The replay exceeds its budget: {reason}"
    reason: str


class ReplayedFailureError(Exception):
    """Stands for the error of a tool or a model in the recorded run, whose class cannot be created again.

    Attributes:
        type_name: Name of the class.
    """

    def __init__(self, message: str, type_name: str = "") -> None:
        super().__init__(message)
        self.type_name = type_name
