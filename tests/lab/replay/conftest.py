"""A database for the recordings of a test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.replay.taping import Tapes


@pytest.fixture
def tapes(tmp_path: Path) -> Iterator[Tapes]:
    made = Tapes(tmp_path)
    yield made
    made.recorder.shutdown()
