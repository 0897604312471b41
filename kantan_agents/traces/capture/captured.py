"""``CapturedRun``: what a run hands over to the recorder when it ends, and how it finds the recorders."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Protocol
from weakref import ref

import msgspec


class RunRecorder(Protocol):
    """What records the traces of runs."""

    def records(self, trace_id: str) -> bool:
        """Return whether it records an open trace."""
        ...


_wanting: list[ref[RunRecorder]] = []


# The garbage collector never looks at these, for which runs would wait. So nothing in them may refer to them.
class CapturedRun(msgspec.Struct, eq=False, gc=False):
    """The complete record of a run that has ended.

    Attributes:
        id: Id of the run.
        trace_id: Id of its trace.
        data: The record, as ``pack`` takes it; the recorder's thread packs it.
        size: About how many bytes it takes, without what other records have too.
        record_id: Id of the trace or span that the run is.
    """

    id: str
    trace_id: str
    data: Mapping[str, Any]
    size: int
    record_id: str = ""


ending: ContextVar[CapturedRun | None] = ContextVar("kantan_agents_ending_run", default=None)
"""The run whose trace or span is just being ended; a recorder reads it when it is called for that end.

So the record reaches exactly the recorders that get the trace, and after all spans of the run.
"""


def want_records(recorder: RunRecorder) -> None:
    """Have runs captured whose traces ``recorder`` records, as long as it exists."""
    _wanting[:] = [*(known for known in _wanting if known() is not None), ref(recorder)]


def is_record_wanted(trace_id: str) -> bool:
    """Return whether a recorder wants the complete record of the runs in an open trace."""
    for known in _wanting:
        recorder = known()
        if recorder is not None and recorder.records(trace_id):
            return True
    return False
