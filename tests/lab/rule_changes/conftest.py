"""A file to which the runs of a test are recorded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.rule_changes.recorded import Recording, recording


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Recording]:
    with recording(tmp_path / "traces.sqlite3") as made:
        yield made
