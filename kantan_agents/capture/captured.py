"""``CapturedRun``: what a run hands over to the recorder when it ends, and how it finds the recorders."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Protocol
from weakref import ref

import attrs
import msgspec

_DEEPEST = 100


class RunRecorder(Protocol):
    """What records the traces of runs."""

    def records(self, trace_id: str) -> bool:
        """Return whether it records an open trace."""
        ...


_wanting: list[ref[RunRecorder]] = []


@attrs.define(eq=False)
class CapturedRun:
    """The complete record of a run that has ended.

    Attributes:
        run_id: Id of the run.
        trace_id: Id of its trace.
        data: The record as JSON data with all contents in place. Parts that were encoded when they were
            captured are ``msgspec.Raw``. Its start is a ``datetime``, and its seconds are not rounded:
            ``packed_run`` converts both.
        size: About how many bytes it takes.
    """

    run_id: str
    trace_id: str
    data: Mapping[str, Any]
    size: int


@attrs.define(eq=False)
class EndingRun:
    """A run whose trace or span is just being ended.

    Attributes:
        record_id: Id of the trace or span.
        captured: Its record.
    """

    record_id: str
    captured: CapturedRun


ending: ContextVar[EndingRun | None] = ContextVar("kantan_agents_ending_run", default=None)
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


def encoder(hook: Callable[[Any], Any]) -> Callable[[Any], bytes]:
    """Return a function that encodes any value as JSON.

    Args:
        hook: Converts a value of another type than those of JSON, or raises TypeError.
    """
    encode = msgspec.json.Encoder(enc_hook=hook).encode

    def encode_any(value: Any) -> bytes:
        try:
            return encode(value)
        except Exception:  # noqa: BLE001 - half a surrogate pair, odd keys, a value that has no JSON
            return json.dumps(_plain(value, hook, ()), default=str, allow_nan=False).encode()

    return encode_any


def _plain(value: Any, hook: Callable[[Any], Any], parents: tuple[int, ...]) -> Any:
    if value is None or isinstance(value, (str, int, bool)):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else None  # JSON has no NaN and no infinity
    if isinstance(value, msgspec.Raw):
        return json.loads(bytes(value))
    if id(value) in parents or len(parents) > _DEEPEST:
        return "..."
    path = (*parents, id(value))
    if isinstance(value, dict):
        return {str(key): _plain(inner, hook, path) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner, hook, path) for inner in value]
    try:
        return _plain(hook(value), hook, path)
    except Exception:  # noqa: BLE001 - the conversion is user code
        return f"<{type(value).__name__}>"
