"""Fixtures for the tests of how records of runs are stored."""

from __future__ import annotations

from tests.traces.capture.conftest import recording, recording_at
from tests.traces.recorder.conftest import folder, start

__all__ = ["folder", "recording", "recording_at", "start"]
