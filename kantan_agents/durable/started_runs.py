"""The process's started ``DurableRuns``: at most one, as there is one DBOS."""

from __future__ import annotations

import os
from threading import Thread
from typing import Any, ClassVar
from weakref import WeakSet

from kantan_agents.errors import DurableNotStartedError


class Started:
    """The process's ``DurableRuns``."""

    runs: Any = None
    closing: Thread | None = None
    made: ClassVar[WeakSet[Any]] = WeakSet()


def started_runs(agent: str) -> Any:
    """Return the started ``DurableRuns``; E150 if there is none."""
    if Started.runs is None:
        reason = "no DurableRuns is started; write `async with DurableRuns(URL, agents=[...]):` around it"
        raise DurableNotStartedError(agent=agent, reason=reason)
    return Started.runs


def _forget_after_fork() -> None:
    Started.runs = Started.closing = None
    for runs in [*Started.made]:
        runs.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
