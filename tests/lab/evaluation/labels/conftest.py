"""An evaluation that is made once, and a copy of it for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import agents
import pytest

from kantan_agents.lab import Evaluation
from tests.lab.evaluation.labels.shop import copied, evaluate_shop


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    agents.set_trace_processors([])
    path = tmp_path_factory.mktemp("shop") / "traces.sqlite3"
    evaluate_shop(path, 40, context={"customer": {"name": "Aiko"}}, expected="right")
    return path


@pytest.fixture(scope="session")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four cases, for properties that are checked on many copies."""
    agents.set_trace_processors([])
    path = tmp_path_factory.mktemp("few") / "traces.sqlite3"
    evaluate_shop(path, 4)
    return path


@pytest.fixture
def evaluation(shop: Path) -> Iterator[Evaluation]:
    with copied(shop) as found:
        yield found
