"""The record that an ending run passes to recorders."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Protocol
from weakref import ref

import msgspec


class RunRecorder(Protocol):
    """Records the traces of runs."""

    def records(self, trace_id: str) -> bool:
        """Return whether it records this open trace."""
        ...


_wanting: list[ref[RunRecorder]] = []


# Runs would wait for the garbage collector, so it ignores these: nothing in them may refer to them.
class CapturedRun(msgspec.Struct, eq=False, gc=False):
    """The complete record of an ended run.

    The recorder's thread packs ``data``; ``size`` omits shared content.
    """

    id: str
    trace_id: str
    data: Mapping[str, Any]
    size: int
    record_id: str = ""


ending: ContextVar[CapturedRun | None] = ContextVar("kantan_agents_ending_run", default=None)


def want_records(recorder: RunRecorder) -> None:
    """Capture the runs that ``recorder`` records."""
    _wanting[:] = [*(known for known in _wanting if known() is not None), ref(recorder)]


def is_record_wanted(trace_id: str) -> bool:
    """Return whether a recorder wants records of this trace."""
    for known in _wanting:
        recorder = known()
        if recorder is not None and recorder.records(trace_id):
            return True
    return False
