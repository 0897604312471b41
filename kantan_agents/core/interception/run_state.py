"""Run state that the SDK does not pass on."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any, Protocol

from kantan_agents.core.pipeline import Run

active_agent: ContextVar[str | None] = ContextVar("kantan_agents_active_agent", default=None)
"""Name of the agent whose turn it is, set when the SDK lists its tools."""

active_sdk_agent: ContextVar[Any] = ContextVar("kantan_agents_active_sdk_agent", default=None)
"""The SDK's agent whose turn it is, set like ``active_agent``."""

_PENDING = object()
_REDACTORS = object()
_OPEN = object()
_OWNER = object()

# After so many calls, finished tasks are dropped.
_MANY_TASKS = 64


class Redactor(Protocol):
    """Redacts a run's errors, metadata and later input."""

    def input(self, items: Any, where: str) -> Any:
        """Return redacted input; raise to abort the run."""
        ...

    def exception(self, error: BaseException) -> BaseException:
        """Return a redacted exception."""
        ...

    def data(self, data: Any) -> Any:
        """Return redacted data."""
        ...

    def recorded(self, items: Any) -> Any:
        """Return input for the record."""
        ...


def add_redactor(run: Run, redactor: Redactor) -> None:
    """Redact errors of ``run`` at their source."""
    if redactor not in run.state.setdefault(_REDACTORS, []):
        run.state[_REDACTORS].append(redactor)


def redacted_error(run: Run, error: BaseException) -> BaseException:
    """Return ``error`` redacted; cancellations and exits unchanged."""
    if isinstance(error, Exception):
        for redactor in run.state.get(_REDACTORS, ()):
            error = redactor.exception(error)
    return error


def error_message(run: Run, error: BaseException) -> str:
    """Return the redacted message of ``error``."""
    for redactor in run.state.get(_REDACTORS, ()):
        error = redactor.exception(error)
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - __str__ is user code
        return f"<{type(error).__name__}>"


def is_redacted(run: Run) -> bool:
    """Return whether ``run`` has a redactor."""
    return _REDACTORS in run.state


def redacted_data(run: Run, data: Any) -> Any:
    """Return redacted data."""
    for redactor in run.state.get(_REDACTORS, ()):
        data = redactor.data(data)
    return data


def redacted_new_input(run: Run, items: Any, where: str) -> Any:
    """Return redacted new input; E84 aborts the run."""
    for redactor in run.state.get(_REDACTORS, ()):
        items = redactor.input(items, where)
    return items


def redacted_input(run: Run, items: Any) -> Any:
    """Return the input of ``run`` for the record."""
    for redactor in run.state.get(_REDACTORS, ()):
        items = redactor.recorded(items)
    return items


def end_run_with(run: Run, error: Exception) -> None:
    """Make ``run`` fail with the first such error, at the latest in the next turn.

    For code whose errors the SDK would show to the model.
    """
    if _PENDING not in run.state:
        run.state[_PENDING] = redacted_error(run, error)


def pending_error(run: Run | None) -> Exception | None:
    """Return the error that ``run`` must raise."""
    return run.state.get(_PENDING) if run is not None else None


def forget_pending_error(run: Run) -> None:
    """Remove the pending error, for a retry."""
    run.state.pop(_PENDING, None)


def track_call(run: Run) -> None:
    """Register this task as a caller for ``run``."""
    tasks: set[asyncio.Task[Any]] | None = run.state.get(_OPEN)
    if tasks is None:
        return
    task = asyncio.current_task()
    if task is None or task is run.state[_OWNER]:
        return
    # A callback of each task would slow most runs.
    if len(tasks) % _MANY_TASKS == _MANY_TASKS - 1:
        # A copy: a tool may make calls in another thread.
        tasks.difference_update([known for known in tuple(tasks) if known.done()])
    tasks.add(task)


class tracked_calls:  # noqa: N801 - used like a function
    """Track the tasks that make the calls of a run; a failing run waits for them."""

    # Not a generator, which is slower; most runs use this.
    def __init__(self, run: Run) -> None:
        self._state = run.state

    def __enter__(self) -> set[asyncio.Task[Any]]:
        state = self._state
        self._before = state.get(_OPEN), state.get(_OWNER)
        tasks: set[asyncio.Task[Any]] = set()
        state[_OPEN], state[_OWNER] = tasks, asyncio.current_task()
        return tasks

    def __exit__(self, *_: object) -> None:
        self._state[_OPEN], self._state[_OWNER] = self._before
