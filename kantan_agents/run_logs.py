"""What a run leaves in the application's logs, through the application's own configuration."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextvars import Token
from typing import Any

import structlog

from kantan_agents.bridge.model_answers import usage_numbers
from kantan_agents.errors import code_of
from kantan_agents.events import Event
from kantan_agents.events.emitter import outcome_of
from kantan_agents.log import get_logger
from kantan_agents.pipeline import Run

_NAME = "kantan_agents.run"
_log = get_logger(_NAME)
_plain_log = logging.getLogger(_NAME)


def bind_names(run: Run) -> Mapping[str, Token[Any]]:
    """Have the user's own log lines carry the run's id and the agent's name, where structlog makes them."""
    return structlog.contextvars.bind_contextvars(agent_run_id=run.id, agent_name=run.agent.name)


def unbind_names(tokens: Mapping[str, Token[Any]]) -> None:
    """End what ``bind_names`` began."""
    structlog.contextvars.reset_contextvars(**tokens)


def log_end(run: Run, seconds: float, error: BaseException | None) -> None:
    """Log the one line of a run: a warning if it failed, else at info."""
    outcome = outcome_of(error)
    level = logging.WARNING if outcome == "failed" else logging.INFO
    if not _plain_log.isEnabledFor(level):
        return
    values: dict[str, Any] = {"seconds": round(seconds, 6), "trace_id": run.trace_id, **run_usage(run)}
    if error is not None:
        values |= {"error_type": type(error).__name__, "code": code_of(error)}
    _log.log(level, f"run {outcome}", **values)


def run_usage(run: Run) -> dict[str, int]:
    """Return requests and tokens of a run."""
    return usage_numbers(getattr(getattr(run.result, "context_wrapper", None), "usage", None))


def log_event(event: Event) -> None:
    """Log an event at debug."""
    fields = event.to_dict()
    _log.debug(fields.pop("type"), **fields)


def is_debugged() -> bool:
    """Whether each event is to be logged."""
    return _plain_log.isEnabledFor(logging.DEBUG)
