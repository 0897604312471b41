"""The model server of the tests of judging."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.judges.asked import SHARED


@pytest.fixture(scope="package", autouse=True)
def _server() -> Iterator[None]:
    with SHARED.server:
        yield
