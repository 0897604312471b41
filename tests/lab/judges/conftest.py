"""Runs the model server of the judge tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab.judges.stage_server import SHARED


@pytest.fixture(scope="package", autouse=True)
def _server() -> Iterator[None]:
    with SHARED.server:
        yield
