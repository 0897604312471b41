"""Aborts a run that repeats a failing call."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import attrs

from kantan_agents.core.interception import end_run_with, redacted_data, redacted_error
from kantan_agents.core.pipeline import Run
from kantan_agents.errors import RepeatedFailureError

FAILED_TURNS: Final = 5
"""A run fails after this many turns in which the same call failed in the same way, without progress."""

WARNED_FROM: Final = 3

_FAILURES = object()
_LONGEST_REASON: Final = 500
_LONGEST_SOURCE: Final = 2_000
# All numbers except progress: `40 %`, `3/10`, `3 of 10`.
_NUMBER = re.compile(r"(?<![0-9.])[0-9]+(?:\.[0-9]+)*(?!\.?[0-9])(?![ \u00a0]?%|/[0-9]|[ ]of[ ][0-9])")


@attrs.frozen
class UnknownCall:
    """Replaces the SDK's context of a call that has none."""

    tool_call_id: str
    tool_arguments: str = ""


@attrs.define
class _Streak:
    """One call's redacted failures; ``before`` describes the previous turn's."""

    kind: str
    reason: str
    turn: int
    count: int = 1
    failed_calls: set[str] = attrs.field(factory=set)
    error: BaseException | None = None
    before: tuple[str, str, int] | None = None

    def record(self, turn: int, kind: str, reason: str, error: BaseException | None) -> None:
        """A turn's latest counts, because others may be a middleware's attempts."""
        if self.turn != turn:
            self.before = (self.kind, self.reason, self.count)
            self.turn, self.failed_calls = turn, set()
        self.kind, self.reason, self.error = kind, reason, error
        self.count = 1
        if self.before is not None:
            kind_before, reason_before, count = self.before
            # Messages often contain times and ids of requests.
            if kind_before == kind and _NUMBER.sub("0", reason_before) == _NUMBER.sub("0", reason):
                self.count = count + 1


@attrs.define
class _Failures:
    """``worked`` has hashes of successful calls since the first failure."""

    turn: int = 0
    streaks: dict[tuple[str, str], _Streak] = attrs.field(factory=dict)
    worked: set[int] = attrs.field(factory=set)

    def record_success(self, key: tuple[str, str]) -> None:
        """A new success resets all counts.

        A model that changes a file and then repeats the failing tests makes progress.
        """
        self.streaks.pop(key, None)
        if hash(key) in self.worked:
            return
        self.worked.add(hash(key))
        for failing, streak in list(self.streaks.items()):
            if streak.turn == self.turn:
                streak.before, streak.count = None, 1
            else:
                del self.streaks[failing]


def record_failed_call(
    run: Run | None,
    tool_name: str,
    tool_context: Any,
    *,
    reason: str,
    error: BaseException | None = None,
) -> None:
    """Record once per turn; ``reason`` is the model's answer or the error's message."""
    if run is None:
        return
    failures: _Failures = run.state.setdefault(_FAILURES, _Failures())
    key = _key(tool_name, tool_context)
    kind = type(error).__name__ if error is not None else ""
    error = redacted_error(run, error) if error is not None else None
    reason = redacted_data(run, reason)[:_LONGEST_SOURCE]
    streak = failures.streaks.get(key)
    if streak is None:
        streak = failures.streaks[key] = _Streak(kind, reason, failures.turn)
    streak.record(failures.turn, kind, reason, error)
    streak.failed_calls.add(_call_id(tool_context))


def record_working_call(run: Run | None, tool_name: str, tool_context: Any) -> None:
    """Record a result, perhaps of a later attempt."""
    failures: _Failures | None = run.state.get(_FAILURES) if run is not None else None
    if failures is not None:
        failures.streaks.pop(_key(tool_name, tool_context), None)


def end_call(run: Run, tool_name: str, tool_context: Any, output: Any) -> Any:
    """Return the output, with a warning if it fails repeatedly."""
    failures: _Failures | None = run.state.get(_FAILURES)
    if failures is None:  # the usual case
        return output
    key = _key(tool_name, tool_context)
    streak = failures.streaks.get(key)
    if streak is None or streak.turn != failures.turn or _call_id(tool_context) not in streak.failed_calls:
        failures.record_success(key)
        return output
    if streak.count < WARNED_FROM or not isinstance(output, str):
        return output
    left = FAILED_TURNS - streak.count
    end = f"After {left} more such {'failure' if left == 1 else 'failures'} the run ends."
    return (
        f"{output}\nThis call has failed {streak.count} times in the same way. Do not repeat it: change the "
        f"arguments, or do something else. {end if left > 0 else 'The run ends now.'}"
    )


def begin_turn_after_failures(run: Run) -> None:
    """Start a turn; E27 if a call has failed in ``FAILED_TURNS`` turns."""
    failures: _Failures | None = run.state.get(_FAILURES)
    if failures is None:
        return
    failures.turn += 1
    for (tool_name, arguments), streak in failures.streaks.items():
        if streak.count >= FAILED_TURNS:
            del run.state[_FAILURES]  # a retry of the run starts at zero
            error = RepeatedFailureError(
                tool_name=tool_name,
                arguments=arguments,
                reason=_shortened(streak),
                count=streak.count,
            )
            end_run_with(run, error)  # even if this turn belongs to an agent as a tool
            raise error from streak.error


def _shortened(streak: _Streak) -> str:
    # The exception itself: a middleware may have redacted its message.
    whole = streak.reason if streak.error is None else f"{streak.kind}: {streak.error}"
    return whole if len(whole) <= _LONGEST_REASON else f"{whole[: _LONGEST_REASON - 3]}..."


def _call_id(tool_context: Any) -> str:
    return getattr(tool_context, "tool_call_id", None) or ""


def _key(tool_name: str, tool_context: Any) -> tuple[str, str]:
    """Return a key that is equal for equal arguments, whatever their spelling."""
    # The model's arguments: values from a middleware must not be reported.
    arguments = getattr(tool_context, "tool_arguments", None) or ""
    try:
        return tool_name, json.dumps(json.loads(arguments), sort_keys=True, ensure_ascii=False)
    except (ValueError, RecursionError, TypeError):
        return tool_name, str(arguments)
