"""Fixtures: the application of docs/guides/deploying.md as a process, with a model server behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kantan_agents.testing import OfflineServer
from tests.agent.service.service_process import Service, serve
from tests.programs import Preloaded

Serve = Callable[..., Service]


@pytest.fixture
def serve_with(preloaded: Preloaded, tmp_path: Path) -> Iterator[Serve]:
    """``serve_with(server, **options)`` starts the application with ``server`` as the provider of all
    models."""
    started: list[Service] = []

    def start(server: OfflineServer, **options: Any) -> Service:
        service = serve(preloaded, tmp_path, server.environment(), options)
        started.append(service)
        return service

    yield start
    for service in started:
        service.kill()
