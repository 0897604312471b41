"""Trace ids that are the same in OpenTelemetry and in the database."""

from __future__ import annotations

import threading

from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

_PREFIX = "trace_"


class OwnIds(RandomIdGenerator):
    """Gives a new OpenTelemetry trace the digits of the SDK's id.

    The last 62 bits are random, as samplers expect.
    """

    def __init__(self) -> None:
        self._next = threading.local()

    def next_is(self, trace_id: str) -> None:
        """Use this id for the next trace of this thread."""
        digits = trace_id[len(_PREFIX) :]
        is_id = trace_id.startswith(_PREFIX) and len(digits) == 32 and digits.isascii() and digits.isalnum()  # noqa: PLR2004
        try:
            self._next.id = int(digits, 16) if is_id else 0
        except ValueError:  # the SDK's own ids may be any str
            self._next.id = 0

    def generate_trace_id(self) -> int:
        """Return the id of a new trace."""
        chosen, self._next.id = getattr(self._next, "id", 0), 0
        return chosen or super().generate_trace_id()
