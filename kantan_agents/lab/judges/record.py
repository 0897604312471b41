"""Traces and logs judgments."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import agents
from agents import RunConfig, Span, custom_span, get_current_trace

from kantan_agents.core.events.emitter import outcome_of
from kantan_agents.errors import code_of
from kantan_agents.lab.judges.stages import StageResult
from kantan_agents.lab.judges.verdict import Method, StageAttempt, StatusVerdict
from kantan_agents.support.log import get_logger
from kantan_agents.traces.ids import new_run_id, trace_id_of
from kantan_agents.traces.kantan_tracers import share_sqlite_tracers

_log = get_logger("kantan_agents.judges")


@contextmanager
def judgement_trace(judge: str, config: RunConfig) -> Iterator[str | None]:
    """Record a judgment in a trace; yield the id of a recorded one."""
    share_sqlite_tracers()
    outer = get_current_trace()
    if outer is not None:
        yield _known_id(outer)
        return
    trace = agents.trace(
        judge,
        trace_id=config.trace_id or trace_id_of(new_run_id()),
        group_id=config.group_id,
        metadata=config.trace_metadata,
        tracing=config.tracing,
        disabled=config.tracing_disabled,
    )
    with trace:
        yield _known_id(trace)


@contextmanager
def stage_span(stage: Method, config: RunConfig) -> Iterator[Span[Any]]:
    """Record a stage on a ``custom`` span."""
    with custom_span(f"judge: {stage}", {"stage": stage}, disabled=config.tracing_disabled) as span:
        try:
            yield span
        except BaseException as error:
            _set_error(span, error, config)
            raise


def record_attempt(span: Any, attempt: StageAttempt, result: StageResult, config: RunConfig) -> None:
    """Store a stage on the span; only ``decided`` without sensitive data."""
    data = span.span_data.data
    data["decided"] = result.step is not None
    if config.trace_include_sensitive_data:
        data |= {
            "method": result.method,
            "instruction": attempt.instruction,
            "reply": attempt.reply,
            "step": result.step,
            "reason": result.reason,
            "problem": result.problem,
        }


def log_verdict(judge: str, verdict: StatusVerdict, seconds: float, trace_id: str | None) -> None:
    """Log a judgment at level INFO."""
    _log.info(
        "judgement finished",
        judge=judge,
        method=verdict.log_method,
        step=verdict.step,
        rule=verdict.rule.name,
        seconds=round(seconds, 6),
        trace_id=trace_id,
    )


def log_failure(judge: str, error: BaseException, seconds: float, trace_id: str | None) -> None:
    """Log a failed judgment at level WARNING, a canceled one at INFO."""
    outcome = outcome_of(error)
    _log.log(
        logging.WARNING if outcome == "failed" else logging.INFO,
        f"judgement {outcome}",
        judge=judge,
        error_type=type(error).__name__,
        code=code_of(error),
        seconds=round(seconds, 6),
        trace_id=trace_id,
    )


def _known_id(trace: agents.Trace) -> str | None:
    return trace.trace_id if trace.export() else None


def _set_error(span: Any, error: BaseException, config: RunConfig) -> None:
    name = type(error).__name__
    message = str(error) if config.trace_include_sensitive_data else ""
    span.set_error({"message": message or name, "data": {"error_type": name, "code": code_of(error)}})
