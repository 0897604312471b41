"""Records the traces of this process in one more file for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import attrs
from agents import set_trace_processors
from agents.tracing import get_trace_provider

from kantan_agents.tracing.recorder import SQLiteRecorder
from kantan_agents.tracing.recorder.record import recorder_at


@attrs.define
class _Shared:
    """A recorder, and how many blocks use it."""

    recorder: SQLiteRecorder
    users: int = 0


_lock = Lock()
_shared: dict[Path, _Shared] = {}


@contextmanager
def record_too(path: Path) -> Iterator[SQLiteRecorder]:
    """Record the traces of this process in a file too, until the end of the block.

    Blocks at the same time share the recorder of a file. Trace processors that are set meanwhile stay.
    """
    resolved = path.resolve()
    with _lock:
        shared = _shared.get(resolved)
        if shared is None:
            shared = _shared[resolved] = _Shared(recorder_at(path))
            _set([*_processors(), shared.recorder])
        shared.users += 1
    try:
        yield shared.recorder
    finally:
        with _lock:
            shared.users -= 1
            if not shared.users:
                del _shared[resolved]
                _set([one for one in _processors() if one is not shared.recorder])
        if not shared.users:
            shared.recorder.shutdown()
        else:
            shared.recorder.force_flush()


def _processors() -> list[Any]:
    # The SDK has no public way to read its processors, or to take one away again.
    return list(get_trace_provider()._multi_processor._processors)  # type: ignore[attr-defined]


def _set(processors: list[Any]) -> None:
    set_trace_processors(processors)


def is_recorded_too(path: Path) -> bool:
    """Return whether a block records to the file now."""
    with _lock:
        return path.resolve() in _shared
