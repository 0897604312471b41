from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from agents import set_trace_processors

from kantan_agents import Agent, OtelExporter
from kantan_agents.testing import OfflineServer
from tests.otel.receiver import Receiver, receiving

FLUSH = 30.0


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A collector, to which the environment sends everything."""
    with receiving() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
        yield receiver


@pytest.fixture
def export(receiver: Receiver) -> Iterator[Callable[..., OtelExporter]]:
    """``export(...)``: an exporter that receives all traces. Afterwards, everything is sent."""
    made: list[OtelExporter] = []

    def make(**options: Any) -> OtelExporter:
        exporter = OtelExporter(flush_on_sigterm=False, **options)
        set_trace_processors([exporter])
        made.append(exporter)
        return exporter

    yield make
    for exporter in made:
        exporter.shutdown()


@pytest.fixture
def exporter(export: Callable[..., OtelExporter]) -> OtelExporter:
    return export()


@pytest.fixture
def offline() -> Iterator[Callable[..., Any]]:
    """``offline(*replies)``: a model server whose ``bundle()`` is a model."""
    servers: list[OfflineServer] = []

    def start(*replies: Any) -> Any:
        server = OfflineServer([*replies])
        server.__enter__()
        servers.append(server)
        return server.bundle()

    yield start
    for server in servers:
        server.__exit__(None, None, None)


@pytest.fixture
def support(offline: Callable[..., Any]) -> Callable[..., Agent]:
    """``support(*replies, ...)``: an agent whose model gives these replies."""

    def make(*replies: Any, **options: Any) -> Agent:
        return Agent(
            options.pop("name", "support"),
            options.pop("instructions", "Help."),
            model=offline(*replies),
            **options,
        )

    return make


@pytest.fixture
def sent(receiver: Receiver, exporter: OtelExporter) -> Callable[[], Receiver]:
    """``sent()``: the receiver, once everything has arrived."""

    def flush() -> Receiver:
        assert exporter.force_flush(FLUSH)
        return receiver

    return flush
