"""A middleware of the commands: the runs themselves, for what the context does not carry."""

from __future__ import annotations

from kantan_agents.pipeline import Next, Run, Stage


def note_runs(runs: list[Run]) -> Stage:
    """Return a stage that appends each run to ``runs``: its id, its trace, its instructions."""

    async def note_run(run: Run, call_next: Next) -> None:
        runs.append(run)
        await call_next(run)

    return note_run
