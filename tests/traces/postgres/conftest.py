"""Fixtures for the tests of traces in Postgres."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kantan_agents import PostgresRecorder
from tests.recorders import end_recorder


class Start:
    """``start(url)``: a recorder that ends with the test."""

    def __init__(self) -> None:
        self.recorders: list[PostgresRecorder] = []

    def __call__(self, url: str, **options: Any) -> PostgresRecorder:
        recorder = PostgresRecorder(url, flush_on_sigterm=False, **options)
        self.recorders.append(recorder)
        return recorder


@pytest.fixture
def start() -> Iterator[Start]:
    started = Start()
    yield started
    for recorder in started.recorders:
        end_recorder(recorder)
