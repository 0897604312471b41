"""Answers approvals that a delegated run waits for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

from agents import RunState

AnswerApprovals = Callable[[Any], Awaitable["RunState[Any, Any] | None"]]
"""Returns the state of a run's result with the decisions; None if it waits for none."""

answer_approvals: ContextVar[AnswerApprovals | None] = ContextVar(
    "kantan_agents_answer_approvals", default=None
)
"""Set around a run whose user decides during it.

Otherwise, an approval in a delegated run is error E35: it can only resume with its parent.
"""
