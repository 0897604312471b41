"""Records runs in a trace database."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import typer

from kantan_agents.cli.terminal.database import is_named
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.core.pipeline import Next, Run, Stage
from kantan_agents.errors import FileArgumentError
from kantan_agents.traces.backend import backend_of

if TYPE_CHECKING:
    from kantan_agents.cli.terminal.agent_options import AgentRunOptions
    from kantan_agents.traces.recorder import SQLiteRecorder

# The SDK's switch. Only --db overrides it.
DISABLING_VARIABLE = "OPENAI_AGENTS_DISABLE_TRACING"


@attrs.frozen
class RecordingTarget:
    """The trace database of a run; unless ``required``, a failed recording is only reported."""

    path: Path
    required: bool

    def report(self, error: FileArgumentError) -> None:
        """Raise ``error`` if the database is required; otherwise report it."""
        if self.required:
            raise error
        _warn(str(error))


def checked(target: RecordingTarget) -> RecordingTarget | None:
    """Return ``target`` if it can be used; otherwise report it."""
    try:
        check_database(target.path)
    except FileArgumentError as error:
        target.report(error)
        return None
    return target


def target_of(options: AgentRunOptions, invocation: typer.Context) -> RecordingTarget | None:
    """Return a command's trace database, if any."""
    if options.no_record:
        return None
    return checked(RecordingTarget(options.db, required=is_named(invocation)))


def collect_runs(runs: list[Run]) -> Stage:
    """Return a stage that collects runs."""

    async def collect_run(run: Run, call_next: Next) -> None:
        runs.append(run)
        await call_next(run)

    return collect_run


def check_database(path: Path | None) -> None:
    """Check that traces can be written: the SDK would only log the errors."""
    reason = None if path is None else backend_of(path).why_not_writable()
    if reason is not None:
        raise FileArgumentError(path=str(path), reason=reason)


def _warn(reason: str) -> None:
    typer.echo(one_line(f"warning: the run is not recorded: {reason}"), err=True)


def _is_tracing_disabled() -> bool:
    return os.environ.get(DISABLING_VARIABLE, "").lower() in ("1", "true")  # as the SDK reads it


@contextmanager
def recording_to(target: RecordingTarget | None) -> Iterator[SQLiteRecorder | None]:
    """Send all traces to the database of ``target`` only; without one, discard them.

    A line before a run's own error reports a failed recording. Yields the recorder, or None.
    """
    if target is not None and not target.required and _is_tracing_disabled():
        _warn(f"{DISABLING_VARIABLE} is set")
        target = None
    if target is not None:
        try:
            _check_tables(target.path)
        except FileArgumentError as error:
            target.report(error)
            target = None
    with recording(None if target is None else target.path) as recorder:
        try:
            yield recorder
        except Exception:
            if target is not None and recorder is not None:
                _check_recorded(RecordingTarget(target.path, required=False), recorder)
            raise
        if target is not None and recorder is not None:
            _check_recorded(target, recorder)


@contextmanager
def recording(path: Path | None) -> Iterator[SQLiteRecorder | None]:
    """Send all traces to the database at ``path`` only; without a path, discard them.

    Both remove the SDK's exporter, which sends traces to OpenAI. Yields the recorder, or None.
    """
    from agents import set_trace_processors, set_tracing_disabled

    if path is None:
        set_trace_processors([])
        yield None
        return
    from kantan_agents.traces.recorder.record import recorder_at

    _check_tables(path)
    recorder = recorder_at(path)
    try:
        set_trace_processors([recorder])
        # An explicit database overrides an environment variable that disables tracing.
        set_tracing_disabled(False)
        yield recorder
    finally:
        set_trace_processors([])
        recorder.shutdown()


def _check_tables(path: Path) -> None:
    """Create missing tables; reject tables that are not kantan-llm's."""
    try:
        backend_of(path).make_tables()
    except (sqlite3.Error, OSError) as error:
        raise FileArgumentError(path=str(path), reason=str(error)) from error


def _check_recorded(target: RecordingTarget, recorder: SQLiteRecorder) -> None:
    if not recorder.force_flush() or recorder.stats().failed:
        target.report(
            FileArgumentError(path=str(recorder.path), reason="the run could not be recorded in it")
        )
