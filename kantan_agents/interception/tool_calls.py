"""A tool call from its start to its end: told as events, and wrapped in the user's middleware."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from kantan_agents.errors import code_of
from kantan_agents.events import ToolCallFinished, ToolCallRefused, ToolCallStarted
from kantan_agents.events.emitter import Emitter, Stopwatch, outcome_of
from kantan_agents.interception.calls import ToolCall, ToolNext
from kantan_agents.interception.chain import around_tool_call
from kantan_agents.interception.open_calls import note_open_call
from kantan_agents.interception.run_end import end_run_with
from kantan_agents.pipeline import Run

current_tool_call: ContextVar[ToolCall | None] = ContextVar("kantan_agents_current_tool_call", default=None)
"""The tool call this task is in."""

_asked_about: ContextVar[ToolCall | None] = ContextVar("kantan_agents_asked_about", default=None)


Settle = Callable[[ToolCall, ToolNext], Awaitable[Any]]
"""Stands around the middleware of a tool call: answers for it, or ends the run."""


async def tool_call_made(run: Run, call: ToolCall, invoke: ToolNext, settle: Settle | None = None) -> Any:
    """Run a tool for ``run`` through its middleware, and tell its observers.

    Args:
        run: The run.
        call: The call.
        invoke: Asks the rules inside ``asking_rules(call)``, and runs the tool; what the tool raises is
            noted with ``note_failure``.
        settle: Stands around the middleware, inside of what is told.

    Raises:
        Exception: What the tool, the rules' policy or a middleware raised. What a middleware raised ends
            the run, whatever the SDK makes of it.
    """
    note_open_call(run)
    token = current_tool_call.set(call)
    raised: list[Exception] = []

    async def attempt(given: ToolCall) -> Any:
        given.refusal = given.error = call.refusal = call.error = None  # of an earlier attempt
        try:
            return await invoke(given)
        except Exception as error:
            raised.append(error)
            raise
        finally:
            call.refusal, call.error = given.refusal, given.error

    def make(given: ToolCall) -> Awaitable[Any]:
        return around_tool_call(run.tool_calls, given, attempt)

    def made() -> Awaitable[Any]:
        return make(call) if settle is None else settle(call, make)

    try:
        return await (made() if run.events is None else _told(run.events, call, made))
    except Exception as error:
        if not any(error is known for known in raised):
            end_run_with(run, error)  # of a middleware; the SDK would make another error or a text of it
        raise
    finally:
        current_tool_call.reset(token)


async def _told(events: Emitter, call: ToolCall, made: Callable[[], Awaitable[Any]]) -> Any:
    names: dict[str, Any] = {"agent": call.agent, "call_id": call.call_id, "tool": call.name}
    watch = Stopwatch()
    error: BaseException | None = None
    output: Any = None
    try:
        await events.emit(ToolCallStarted, **names, arguments=call.arguments)
        output = await made()
    except BaseException as raised:
        error = raised
        raise
    finally:
        if call.refusal is not None:
            await events.emit_end(
                ToolCallRefused,
                **names,
                seconds=watch.seconds,
                code=code_of(call.refusal) or "",
                message=str(call.refusal),
            )
        else:
            await events.emit_end(
                ToolCallFinished,
                **names,
                seconds=watch.seconds,
                outcome=outcome_of(error),
                output=None if output is None else str(output),
                error_type=None if error is None else type(error).__name__,
                message=None if error is None else str(error),
            )
    return output


@contextmanager
def asking_rules(call: ToolCall | None) -> Iterator[None]:
    """Have a refusal by the rules noted on ``call``, as long as this is entered.

    Not while the tool runs: a refusal of a call that is made in it is another one.
    """
    token = _asked_about.set(call)
    try:
        yield
    finally:
        _asked_about.reset(token)


def note_refusal(error: Exception) -> None:
    """Note that the rules refuse the tool call they are being asked about."""
    call = _asked_about.get()
    if call is not None:
        call.refusal = error


def note_failure(call: ToolCall, error: Exception | None) -> None:
    """Note what the tool itself has raised, None for nothing yet."""
    call.error = error


async def told_refusal(call: ToolCall, error: Exception) -> None:
    """Tell of a call that was refused before there was anything to run."""
    events = call.run.events
    if events is None:
        return
    names: dict[str, Any] = {"agent": call.agent, "call_id": call.call_id, "tool": call.name}
    try:
        await events.emit(ToolCallStarted, **names, arguments=call.arguments)
    finally:
        await events.emit_end(
            ToolCallRefused, **names, seconds=0.0, code=code_of(error) or "", message=str(error)
        )
