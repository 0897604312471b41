"""Token counts that are read from records and events."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kantan_agents.core.usage import tokens_of


@pytest.mark.parametrize("count", [None, "7", -7, float("inf"), float("nan"), [7]])
def test_what_is_not_a_number_of_tokens_counts_as_none(count: Any) -> None:
    assert tokens_of({"usage": {"input_tokens": 5, "output_tokens": count}}) == (5, 0)


@pytest.mark.parametrize("counted", [None, {}, {"usage": None}, SimpleNamespace(usage=None)])
def test_without_usage_there_are_no_tokens(counted: Any) -> None:
    assert tokens_of(counted) == (0, 0)
