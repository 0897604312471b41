"""The ``DurableRuns`` that is started in this process. There is at most one, as there is one DBOS."""

from __future__ import annotations

import os
from typing import Any

from kantan_agents.errors import DurableNotStartedError


class Started:
    """What is started in this process.

    Attributes:
        runs: The one that is started.
    """

    runs: Any = None


def started_runs(agent: str) -> Any:
    """Return the ``DurableRuns`` that is started.

    Raises:
        DurableNotStartedError: E150, there is none.
    """
    if Started.runs is None:
        reason = "no DurableRuns is started; write `async with DurableRuns(URL, agents=[...]):` around it"
        raise DurableNotStartedError(agent=agent, reason=reason)
    return Started.runs


def _forget_after_fork() -> None:
    runs, Started.runs = Started.runs, None
    if runs is not None:
        runs.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
