"""The answerer of the approvals that a delegated run waits for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

from agents import RunState

AnswerApprovals = Callable[[Any], Awaitable["RunState[Any, Any] | None"]]
"""Takes the result of a run; returns its state with the decisions, or None if it waits for none."""

answer_approvals: ContextVar[AnswerApprovals | None] = ContextVar(
    "kantan_agents_answer_approvals", default=None
)
"""Set around a run by a program whose user decides during it, such as ``kantan-agents chat``.

Without it, a delegated run that needs an approval is error E35: it can only resume with its parent.
"""
