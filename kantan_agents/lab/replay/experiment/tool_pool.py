"""``ToolPool``: the recorded tool calls of a run, from which equal calls are answered."""

from __future__ import annotations

from collections.abc import Iterable

from kantan_agents.core.interception import ToolCall
from kantan_agents.lab.replay.answers_from_recording import plain_arguments, was_made
from kantan_agents.support.secrets import mask
from kantan_agents.traces.capture import RunRecord, ToolCallRecord


class ToolPool:
    """The recorded calls of a run and of the runs inside it.

    A call is equal to a recorded one if the same agent calls the same tool with the same arguments. Equal
    recorded calls are used in their order; when all are used, the last one answers again.

    Args:
        runs: The recorded runs.
    """

    def __init__(self, runs: Iterable[RunRecord]) -> None:
        self._calls = [call for run in runs for call in run.tool_calls if was_made(call)]
        self._used: list[ToolCallRecord] = []

    def has(self, call: ToolCall) -> bool:
        """Return whether a recorded call answers this one."""
        return any(_has_result(one) for one in self._equal(call))

    def take(self, call: ToolCall) -> ToolCallRecord | None:
        """Return the recorded call that answers this one; None if there is none."""
        equal = [one for one in self._equal(call) if _has_result(one)]
        if not equal:
            return None
        chosen = next((one for one in equal if not self._is_used(one)), equal[-1])
        self._used.append(chosen)
        return chosen

    def rejected(self, call: ToolCall) -> ToolCallRecord | None:
        """Return a recorded call equal to this one that a person has rejected; None if there is none."""
        rejected = [one for one in self._equal(call) if one.decision is None and one.error is None]
        chosen = next((one for one in rejected if not self._is_used(one)), None)
        if chosen is not None:
            self._used.append(chosen)
        return chosen

    def examples(self, name: str) -> list[ToolCallRecord]:
        """Return the recorded calls of a tool that have returned something."""
        return [
            one for one in self._calls if one.tool.name == name and _has_result(one) and one.failure is None
        ]

    def _equal(self, call: ToolCall) -> list[ToolCallRecord]:
        written = getattr(call.tool_context, "tool_arguments", None)
        arguments = plain_arguments(mask(written if isinstance(written, str) else call.arguments))
        return [
            one
            for one in self._calls
            if one.agent == call.agent
            and (one.tool.name == call.name or call.name in one.tool.names)
            and plain_arguments(one.arguments) == arguments
        ]

    def _is_used(self, call: ToolCallRecord) -> bool:
        return any(call is one for one in self._used)


def _has_result(call: ToolCallRecord) -> bool:
    """Return whether the tool has run to its end: it was neither refused, nor rejected, nor cancelled."""
    if call.decision is None or not call.decision.is_allowed:
        return False
    if call.failure is not None:
        return call.failure.type != "CancelledError"
    return call.error is None
