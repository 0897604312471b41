"""The calls of a run that are still under way when the run itself has come to its end.

Where a run is cancelled, or one of several tools has failed, the SDK cancels the other tools and does not
wait for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kantan_agents.pipeline import Run
from kantan_agents.support.waiting import wait_for_end

_OPEN = object()
_OWNER = object()


def note_open_call(run: Run) -> None:
    """Note that this task makes a call for ``run``."""
    task = asyncio.current_task()
    tasks: set[asyncio.Task[Any]] | None = run.state.get(_OPEN)
    if task is not None and tasks is not None and task is not run.state[_OWNER] and task not in tasks:
        tasks.add(task)
        task.add_done_callback(tasks.discard)


@asynccontextmanager
async def none_left_open(run: Run) -> AsyncIterator[None]:
    """Make the calls of a run; if it fails or is cancelled, wait until those under way have ended."""
    tasks: set[asyncio.Task[Any]] = set()
    before = {key: run.state[key] for key in (_OPEN, _OWNER) if key in run.state}
    run.state[_OPEN], run.state[_OWNER] = tasks, asyncio.current_task()
    try:
        yield
    except BaseException:
        await wait_for_end(*tasks)
        raise
    finally:
        del run.state[_OPEN], run.state[_OWNER]
        run.state.update(before)
