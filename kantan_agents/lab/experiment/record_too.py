"""Records traces in one more file for a while."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import attrs
from agents import set_trace_processors
from agents.tracing import get_trace_provider

from kantan_agents.support.waiting import run_to_end
from kantan_agents.traces.recorder import SQLiteRecorder
from kantan_agents.traces.recorder.record import recorder_at
from kantan_agents.traces.registry import flush_recorders


@attrs.define
class _Shared:
    """A recorder and the number of its blocks."""

    path: Path
    recorder: SQLiteRecorder
    users: int = 0


_lock = Lock()
_shared: dict[Path, _Shared] = {}


@contextmanager
def record_too(path: Path) -> Iterator[SQLiteRecorder]:
    """Record the traces of this process in a file too; concurrent blocks share its recorder."""
    shared = _entered(path)
    try:
        yield shared.recorder
    finally:
        _left(shared)()


@asynccontextmanager
async def recorded(path: Path) -> AsyncIterator[None]:
    """Record the traces of this process in a file, unless they already are; wait even if canceled."""
    shared = None if _is_recorded_without(path) else _entered(path)
    try:
        yield
    finally:
        await run_to_end(partial(flush_recorders, path) if shared is None else _left(shared))


def _entered(path: Path) -> _Shared:
    resolved = path.resolve()
    with _lock:
        shared = _shared.get(resolved)
        if shared is None:
            shared = _shared[resolved] = _Shared(resolved, recorder_at(path))
            _set([*_processors(), shared.recorder])
        shared.users += 1
    return shared


def _left(shared: _Shared) -> Callable[[], object]:
    """Remove an unused recorder; return a function that writes the rest, which may take seconds."""
    with _lock:
        shared.users -= 1
        if shared.users:
            return shared.recorder.force_flush
        del _shared[shared.path]
        _set([one for one in _processors() if one is not shared.recorder])
    return shared.recorder.shutdown


def _is_recorded_without(path: Path) -> bool:
    resolved = path.resolve()
    with _lock:
        return resolved not in _shared and any(
            isinstance(one, SQLiteRecorder) and one.path == resolved for one in _processors()
        )


def _processors() -> list[Any]:
    # The SDK has no public way to read or remove its processors.
    return list(get_trace_provider()._multi_processor._processors)  # type: ignore[attr-defined]


def _set(processors: list[Any]) -> None:
    set_trace_processors(processors)
