"""Sends a run through its pipeline."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from structlog.contextvars import bind_contextvars, reset_contextvars

from kantan_agents.agent.bridge.captured import capture_run
from kantan_agents.agent.cancelling import cancel_later, is_about_to_be_cancelled
from kantan_agents.agent.running.logs import log_end, run_usage
from kantan_agents.core.context import check_context
from kantan_agents.core.events import Delegated, RunCancelled, RunFailed, RunFinished, RunStarted
from kantan_agents.core.events.emitter import Emitter, Stopwatch, outcome_of
from kantan_agents.core.interception import current_tool_call, error_message
from kantan_agents.core.pipeline import Next, Pipeline, Run, RunContext, Stage, current_run, loggable
from kantan_agents.errors import code_of
from kantan_agents.models.client_pool import import_for_requests, unimported
from kantan_agents.models.finish_reasons import finish_reason
from kantan_agents.models.structured import json_data
from kantan_agents.support.log import get_logger
from kantan_agents.support.waiting import wait_for_end
from kantan_agents.traces.spans import RunTrace

_log = get_logger("kantan_agents.run")

# For structlog lines in user code; `bind_contextvars` would look them up each time.
_names = bind_contextvars(agent_run_id="", agent_name="")
_run_id, _agent_name = (token.var for token in _names.values())
reset_contextvars(**_names)

# From `_run_with_events`. The outer run's handlers are among the inner run's.
_OF_RUN = (Delegated, RunStarted, RunFinished, RunFailed, RunCancelled)


async def drive(run: Run, pipeline: Pipeline) -> RunContext[Any]:
    """Send ``run`` through ``pipeline`` in its trace; return its context.

    A stage's error gets the run as ``error.kantan_run``, and the context is restored.
    """
    outer = current_run.get()
    token = current_run.set(run)
    id_token, name_token = _run_id.set(run.id), _agent_name.set(run.agent.name)
    begun = perf_counter()
    error: BaseException | None = None
    late: BaseException | None = None
    try:
        with RunTrace(run):
            run._capture = capture_run(run, outer)
            try:
                if run.events is None or not run.events.wants(*_OF_RUN):
                    await _run(run, pipeline)
                else:
                    late = await _run_with_events(run.events, run, pipeline)
            finally:
                if run.events is not None:
                    run.events.close()
    except BaseException as raised:
        error = raised
        raise
    finally:
        run.outcome = "finished" if error is None else outcome_of(error)
        if run._closers:
            await _close(run)
        log_end(run, perf_counter() - begun, error)
        _agent_name.reset(name_token)
        _run_id.reset(id_token)
        current_run.reset(token)
    if late is not None:
        raise late
    return run.context  # type: ignore[return-value]  # RunContext is only for type checkers


async def _close(run: Run) -> None:
    await wait_for_end(asyncio.ensure_future(_close_each(run)))


async def _close_each(run: Run) -> None:
    while run._closers:
        try:
            await run._closers.pop()()
        except Exception as error:  # noqa: BLE001, PERF203 - the others are closed all the same
            _log.warning("what a tool has left open cannot be closed", run_id=run.id, error=loggable(error))


def raising(error: Exception) -> Stage:
    """Return a stage that raises an earlier ``error`` inside the trace."""

    async def raise_it(_run: Run, _call_next: Next) -> None:
        raise error

    return raise_it


async def _run(run: Run, pipeline: Pipeline) -> None:
    result_before = run.context.get("result") if isinstance(run.context, dict) else None
    try:
        if unimported:
            await import_for_requests()
        await pipeline(run)
        if check_context(run.context).get("result") is result_before:
            # A stage stopped before `call_sdk`, so the stored result is an earlier run's.
            run.context["result"] = run.result
            if run.result is None and "call_sdk" not in pipeline.names:
                _log.warning(
                    "the run ended without a result: its pipeline has no stage call_sdk", run_id=run.id
                )
        # `is_about_to_be_cancelled`, without a call in every run.
        if getattr(asyncio.current_task(), "_must_cancel", False):
            await asyncio.sleep(0)
    except BaseException as error:
        run.roll_back()
        _attach(error, run)
        raise


async def _run_with_events(events: Emitter, run: Run, pipeline: Pipeline) -> BaseException | None:
    """Run with events; the last one has the outcome.

    A cancellation during its delivery is too late: it reaches the caller's next await. An exit is returned,
    to be raised after the run.
    """
    watch = Stopwatch()
    await _emit_delegated(events, run)  # before the start: a run cancelled here emits neither start nor end
    try:
        await events.emit(RunStarted, trace_id=run.trace_id)
        await _run(run, pipeline)
    except BaseException as error:
        if outcome_of(error) == "cancelled":
            await events.emit_end(RunCancelled, seconds=watch.seconds)
        else:
            with _too_late():
                await events.emit_end(
                    RunFailed,
                    seconds=watch.seconds,
                    error_type=type(error).__name__,
                    code=code_of(error),
                    message=error_message(run, error),
                )
        raise
    output = getattr(run.result, "final_output", run.result)
    try:
        with _too_late():
            await events.emit_end(
                RunFinished,
                seconds=watch.seconds,
                output=json_data(output),
                usage=run_usage(run),
                waits_for_approval=bool(getattr(run.result, "interruptions", None)),
                stopped=run.is_stopped,
                finish_reason=finish_reason(run.result),
            )
            if is_about_to_be_cancelled():
                await asyncio.sleep(0)
    except BaseException as exit_:  # noqa: BLE001 - raised by the caller
        return exit_
    return None


@contextmanager
def _too_late() -> Iterator[None]:
    try:
        yield
    except asyncio.CancelledError as error:
        cancel_later(error)


async def _emit_delegated(events: Emitter, run: Run) -> None:
    if events.parent is not None:
        call = current_tool_call.get()
        agent = call.agent if call is not None and call.run.events is events.parent else None
        await events.parent.emit(Delegated, agent=agent, to_agent=run.agent.name, child_run_id=run.id)


def _attach(error: BaseException, run: Run) -> None:
    try:
        error.kantan_run = run  # type: ignore[attr-defined]
    except AttributeError:
        return  # an exception class with slots takes no more attributes
