"""``traces save``: writes a run's recording."""

from __future__ import annotations

from pathlib import Path

import typer

from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.cli.terminal.show_quantities import counted
from kantan_agents.cli.traces.export import check_target
from kantan_agents.cli.traces.open_store import open_store


def save_recording(path: Path, trace_id: str, output: str, *, run: str | None, force: bool) -> None:
    """Write the recording of a run."""
    target = check_target(output, path, force=force)
    trace = open_store(path).trace(trace_id)

    from kantan_agents.lab.replay import Recording

    recording = Recording.of(trace, run=run)
    recording.save(target)
    calls = counted(sum(len(run.model_calls) for run in recording.runs), "model call")
    typer.echo(f"{calls} of {one_line(recording.root.agent)} written to {one_line(output)}", err=True)
