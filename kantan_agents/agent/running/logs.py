"""Log lines of runs, in the application's logging configuration."""

from __future__ import annotations

import logging
import os
from typing import Any

from kantan_agents.agent.bridge.model_answers import usage_of_run
from kantan_agents.core.events import Event
from kantan_agents.core.events.emitter import outcome_of
from kantan_agents.core.interception import current_tool_call
from kantan_agents.core.pipeline import Run, current_run
from kantan_agents.errors import code_of
from kantan_agents.models.finish_reasons import answer_cut_off, finish_reason
from kantan_agents.support.log import get_logger

_NAME = "kantan_agents.run"
_log = get_logger(_NAME)
_plain_log = logging.getLogger(_NAME)


def log_end(run: Run, seconds: float, error: BaseException | None) -> None:
    """Log a run's end: at level warning if it failed, else at info."""
    if not _plain_log.isEnabledFor(logging.WARNING if error is not None else logging.INFO):
        return
    outcome = outcome_of(error)
    level = logging.WARNING if outcome == "failed" else logging.INFO
    usage = run_usage(run)
    if not usage["requests_without_usage"]:
        del usage["requests_without_usage"]  # the usual case
    values: dict[str, Any] = {"seconds": round(seconds, 6), "trace_id": run.trace_id, **usage}
    if error is not None:
        values |= {"error_type": type(error).__name__, "code": code_of(error)}
    elif answer_cut_off(run.result):
        values["finish_reason"] = finish_reason(run.result)
    _log.log(level, f"run {outcome}", **values)


def run_usage(run: Run) -> dict[str, int]:
    """Return a run's requests and tokens."""
    usage = getattr(getattr(run.result, "context_wrapper", None), "usage", None)
    return usage_of_run(usage, getattr(run.result, "raw_responses", None) or ())


# Fields that users and models write, and fields that tools write.
_MODEL_CONTENT = {"text", "output", "message"}
_TOOL_CONTENT = {"arguments", "output", "message", "tool"}


def log_event(event: Event) -> None:
    """Log an event at level debug, without private fields."""
    fields = event.to_dict()
    for name in _private_fields(event):
        fields.pop(name, None)
    _log.debug(fields.pop("type"), **fields)


def _private_fields(event: Event) -> set[str]:
    run = current_run.get()
    is_of_tool = hasattr(event, "tool")
    content = _TOOL_CONTENT if is_of_tool else _MODEL_CONTENT
    variable = "OPENAI_AGENTS_DONT_LOG_TOOL_DATA" if is_of_tool else "OPENAI_AGENTS_DONT_LOG_MODEL_DATA"
    is_open = run is not None and run.id == event.run_id and run.records_sensitive_data
    if is_open and os.environ.get(variable, "").lower() not in ("1", "true"):
        return set()
    # A model may have invented the name of a tool, unless the tool is being called.
    call = current_tool_call.get()
    is_called = call is not None and call.tool is not None and call.name == getattr(event, "tool", None)
    return content - {"tool"} if is_called else content


def is_debugged() -> bool:
    """Return whether debug events are logged."""
    return _plain_log.isEnabledFor(logging.DEBUG)
