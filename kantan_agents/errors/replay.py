"""Errors of recordings and replays."""

from __future__ import annotations

from typing import Any

from kantan_agents.errors.root import KantanAgentsError


class IncompleteRecordError(KantanAgentsError):
    """A run is not recorded completely, so it cannot be run again.

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
    """A file is not a recording that this version can read.

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
    """A replayed run has left the recording. In pytest, it is a failed assertion.

    Attributes:
        place: The call at which it has, such as ``"model call 2 of 'support'"``.
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
    """A run has something in it that cannot be replayed.

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
    """A change leaves everything as it is.

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
    """An agent lacks a tool that the recorded run has called.

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
    """No recorded run is left that could be replayed.

    Attributes:
        reason: Why not, and what to do.
    """

    code = "E97"
    is_bad_input = True
    template = "The cohort is empty: {reason}"
    reason: str


class ReplayBudgetError(KantanAgentsError):
    """A replay of a cohort would cost more than it may.

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
