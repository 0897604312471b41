"""An error that is to end a run, from a place where the SDK would make a text of it for the model."""

from __future__ import annotations

from kantan_agents.pipeline import Run

_PENDING = object()


def end_run_with(run: Run, error: Exception) -> None:
    """Have ``run`` end with ``error``, at the latest when the SDK asks for the tools of the next turn."""
    run.state.setdefault(_PENDING, error)


def pending_error(run: Run | None) -> Exception | None:
    """Return the error that is to end ``run``, if there is one."""
    return run.state.get(_PENDING) if run is not None else None


def forget_pending_error(run: Run) -> None:
    """Begin anew: a middleware may try a run again."""
    run.state.pop(_PENDING, None)
