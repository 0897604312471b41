"""Runs tool calls through middleware."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import partial
from typing import Any

from kantan_agents.core.events import ToolCallDenied, ToolCallFinished, ToolCallStarted
from kantan_agents.core.events.emitter import Emitter, Stopwatch, outcome_of
from kantan_agents.core.interception.calls import ToolCall, ToolNext
from kantan_agents.core.interception.chain import around_tool_call
from kantan_agents.core.interception.run_state import (
    end_run_with,
    error_message,
    is_redacted,
    redacted_error,
    track_call,
)
from kantan_agents.core.pipeline import Run
from kantan_agents.errors import code_of
from kantan_agents.tool_rules import Decision, RuleLayers, ToolFacts

current_tool_call: ContextVar[ToolCall | None] = ContextVar("kantan_agents_current_tool_call", default=None)
"""The tool call this task is in."""

_checked_call: ContextVar[ToolCall | None] = ContextVar("kantan_agents_checked_call", default=None)
"""The tool call whose rules this task checks."""

_NOTE = "_kantan_note_result"

tool_call_notes: list[Callable[[str], None]] = []
"""For telemetry: called with each call's id at its start, inside the SDK's span."""

Settle = Callable[[ToolCall, ToolNext], Awaitable[Any]]
"""Wraps a tool call's middleware and handles its errors."""


def run_tool_call(run: Run, call: ToolCall, invoke: ToolNext, settle: Settle | None = None) -> Awaitable[Any]:
    """Run a tool through its middleware, and emit the events of the call.

    ``invoke`` checks the rules inside ``checking_rules(call)``, runs the tool, and calls ``record_failure``.
    ``settle`` wraps the middleware. A middleware's error aborts the run, even if the SDK turns it into a
    result for the model.
    """
    track_call(run)
    if run.is_only_captured and settle is None and not is_redacted(run):
        return _only_captured(call, invoke)  # most runs
    return _run_around(run, call, invoke, settle)


async def _run_around(run: Run, call: ToolCall, invoke: ToolNext, settle: Settle | None) -> Any:
    if run._journal is not None:
        run._journal.number(call)
        invoke = partial(_keeping_refusal, run._journal, invoke)
        settle = partial(_keeping_end, run._journal, settle)
    capture_begun(call)  # before it is current: the record names the surrounding call
    token = current_tool_call.set(call)
    raised: list[BaseException] = []

    async def attempt(passed: ToolCall) -> Any:
        passed.refusal = passed.error = call.refusal = call.error = None  # from an earlier attempt
        try:
            return await invoke(passed)
        except Exception as error:
            failure = redacted_error(run, error)
            raised.append(failure)
            if failure is error:
                raise
            if passed.error is error:
                passed.error = failure
        finally:
            call.refusal, call.error = passed.refusal, passed.error
        raise failure  # the `except` block would make the original its context

    def intercepted(passed: ToolCall) -> Awaitable[Any]:
        return around_tool_call(run.tool_calls, passed, attempt)

    def settled() -> Awaitable[Any]:
        return intercepted(call) if settle is None else settle(call, intercepted)

    made = settled if run.events is None else partial(_with_events, run.events, call, settled)
    try:
        return await (made() if call._record is None else _captured(call, made))
    except Exception as error:
        if not any(error is known for known in raised):
            end_run_with(run, error)  # from a middleware; the SDK would wrap or swallow it
        raise
    finally:
        current_tool_call.reset(token)


async def _only_captured(call: ToolCall, invoke: ToolNext) -> Any:
    capture_begun(call)
    token = current_tool_call.set(call)
    try:
        output = await invoke(call)
    except BaseException as error:
        if call._record is not None:
            call._record.ended(call, None, error)
        raise
    else:
        if call._record is not None:
            call._record.ended(call, output, None)
        return output
    finally:
        current_tool_call.reset(token)


async def _keeping_refusal(journal: Any, invoke: ToolNext, call: ToolCall) -> Any:
    output = await invoke(call)
    if call.refusal is not None:
        await journal.refused(call, output)
    return output


async def _keeping_end(journal: Any, settle: Settle | None, call: ToolCall, intercepted: ToolNext) -> Any:
    output = await (intercepted(call) if settle is None else settle(call, intercepted))
    await journal.ended(call, output)
    return output


async def _captured(call: ToolCall, made: Callable[[], Awaitable[Any]]) -> Any:
    try:
        output = await made()
    except BaseException as error:
        call._record.ended(call, None, error)
        raise
    call._record.ended(call, output, None)
    return output


async def _with_events(events: Emitter, call: ToolCall, settled: Callable[[], Awaitable[Any]]) -> Any:
    names: dict[str, Any] = {"agent": call.agent, "call_id": call.call_id, "tool": call.name}
    watch = Stopwatch()
    error: BaseException | None = None
    output: Any = None
    try:
        await events.emit(ToolCallStarted, **names, arguments=call.arguments)
        output = await settled()
    except BaseException as raised:
        error = raised
        raise
    finally:
        if call.refusal is not None:
            await events.emit_end(
                ToolCallDenied,
                **names,
                seconds=watch.seconds,
                code=code_of(call.refusal) or "",
                message=error_message(call.run, call.refusal),
            )
        else:
            await events.emit_end(
                ToolCallFinished,
                **names,
                seconds=watch.seconds,
                outcome=outcome_of(error),
                output=None if output is None else str(output),
                error_type=None if error is None else type(error).__name__,
                message=None if error is None else error_message(call.run, error),
            )
    return output


async def make_call(call: ToolCall, made: Callable[[], Awaitable[Any]]) -> Any:
    """Make an allowed call, or return its stored result."""
    if call._gate is not None:
        refused = await call._gate(call)
        if refused is not None:
            return refused
    run, record = call.run, call._record
    if run is not None:
        if run._tape is not None and not run._tape.lets_run(call):
            made, record = partial(run._tape.tool, call), None
        elif run._journal is not None:
            made = partial(run._journal.tool, call, made)
    try:
        result = await made()
    except BaseException as error:
        if record is not None:
            record.raised(error)
        raise
    if record is not None:
        record.returned(result)
    note: Callable[[ToolCall, Any], None] | None = getattr(call.tool, _NOTE, None)
    if note is not None:
        note(call, result)
    return result


def note_results(tool: Any, note: Callable[[ToolCall, Any], None]) -> None:
    """Call ``note`` with each result of a tool, even a stored one, for tools that change their run."""
    setattr(tool, _NOTE, note)


class checking_rules:  # noqa: N801 - used like a function
    """Record the rules' denials on ``call``.

    Leave the block before the tool runs: its own calls have their own denials.
    """

    # Not a generator, for speed.
    def __init__(self, call: ToolCall | None) -> None:
        self._call = call

    def __enter__(self) -> None:
        self._token = _checked_call.set(self._call)

    def __exit__(self, *_: object) -> None:
        _checked_call.reset(self._token)


def record_refusal(error: Exception) -> None:
    """Record that the rules deny the current call."""
    call = _checked_call.get()
    if call is not None:
        call.refusal = error


def record_failure(call: ToolCall, error: Exception | None) -> None:
    """Record or clear the tool's own error."""
    call.error = error


def capture_decision(facts: ToolFacts, layers: RuleLayers, decision: Decision | None) -> None:
    """Capture the rules' decision about the call."""
    call = _checked_call.get()
    if call is not None and call._record is not None:
        call._record.decided(facts, layers, decision, call.arguments)


def capture_begun(call: ToolCall) -> None:
    """Start to capture a call."""
    if call._record is None and call.run._capture is not None:
        call._record = call.run._capture.tool_call(call)


def capture_hidden_tool(call: ToolCall, tool: Any) -> None:
    """Capture the tool, although the model was not shown it."""
    if call._record is not None:
        call._record.found(tool)


async def result_of_gone(call: ToolCall, refusal: Callable[[], Awaitable[str | None]]) -> str | None:
    """Return an earlier process's result of a tool that the agent no longer has, if any.

    ``refusal`` checks the rules. E155 if the call may have been made and has no stored result.
    """
    journal = call.run._journal
    kept: str | None = None if journal is None else journal.result_of_gone(call)
    if kept is None:
        return None
    refused = await refusal()
    if refused is not None:
        return refused
    journal.number(call)

    async def given() -> str:
        return str(kept)

    capture_begun(call)
    made = given if call._record is None else partial(_captured, call, given)
    events = call.run.events
    return str(await (made() if events is None else _with_events(events, call, made)))


async def emit_refusal(call: ToolCall, error: Exception) -> None:
    """Emit and capture a denied call of an unknown tool."""
    call.refusal = error
    capture_begun(call)
    if call._record is not None:
        call._record.ended(call, None, error)
    if call.run._journal is not None:
        call.run._journal.number(call)
        await call.run._journal.refused(call, str(error))
    events = call.run.events
    if events is None:
        return
    names: dict[str, Any] = {"agent": call.agent, "call_id": call.call_id, "tool": call.name}
    try:
        await events.emit(ToolCallStarted, **names, arguments=call.arguments)
    finally:
        await events.emit_end(
            ToolCallDenied,
            **names,
            seconds=0.0,
            code=code_of(error) or "",
            message=error_message(call.run, error),
        )
