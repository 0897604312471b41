from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from agents import set_trace_processors

from kantan_agents import Agent, OtelExporter
from kantan_agents.testing import OfflineServer
from kantan_agents.traces import registry
from tests.recorders import end_recorder
from tests.traces.telemetry.ending import FLUSH, end_exporters
from tests.traces.telemetry.receiver import Receiver, receiving


@pytest.fixture(autouse=True)
def _no_settings_and_no_exporters(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Start without settings, and end all exporters and recorders."""
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    before = set(threading.enumerate())
    yield
    end_exporters(before)
    for recorder in registry.recorders():
        end_recorder(recorder)


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A collector, to which the environment sends everything. Afterwards, all exporters have ended."""
    before = set(threading.enumerate())
    with receiving() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
        yield receiver
        receiver.status = 200
        end_exporters(before)


@pytest.fixture
def export(receiver: Receiver) -> Callable[..., OtelExporter]:
    """``export(...)``: an exporter that receives all traces."""

    def make(**options: Any) -> OtelExporter:
        exporter = OtelExporter(flush_on_sigterm=False, **options)
        set_trace_processors([exporter])
        return exporter

    return make


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
