from __future__ import annotations

from weakref import WeakKeyDictionary

import pytest

from kantan_agents.models import http_pools


@pytest.fixture(autouse=True)
def _no_counted_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count no pool of an earlier test, whose server may have had the same port."""
    monkeypatch.setattr(http_pools, "_pools", WeakKeyDictionary())
