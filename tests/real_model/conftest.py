"""Fixtures with the real model, which starts once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kantan_agents.testing import OfflineServer
from tests.real_model.language_model import ModelServer, calling_tools
from tests.real_model.recorded_agents import RecordedAgents


@pytest.fixture(scope="session")
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture
def recorded(server: ModelServer, tmp_path: Path) -> Iterator[RecordedAgents]:
    """Agents on the model. At the end of the test, all that is recorded is replayed strictly."""
    agents = RecordedAgents(tmp_path / "traces.sqlite3", server.bundle())
    yield agents
    same, refused = agents.replayed()
    assert refused == agents.unreplayable
    assert same + refused > 0


@pytest.fixture
def proxy(server: ModelServer) -> Iterator[OfflineServer]:
    """A server before the model, which makes it call tools."""
    with OfflineServer(calling_tools(server)) as running:
        yield running
