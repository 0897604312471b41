"""Ends recorders of tests."""

from __future__ import annotations

from typing import Any

SECONDS = 5.0


def end_recorder(recorder: Any) -> None:
    """End a recorder for good, also one that cannot write what it has and would try again without end."""
    recorder.shutdown()
    recorder._writer.stop(SECONDS)
    recorder._reset()  # what waits would start a thread again when a later test forks
