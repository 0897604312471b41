"""Searches what a strategy draws for several kinds of values at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import pytest
from hypothesis import Phase, find, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

T = TypeVar("T")

# Without shrinking: any example will do.
SEARCH = settings(max_examples=5_000, database=None, deadline=None, phases=[Phase.generate])


def first_of_each(strategy: st.SearchStrategy[T], kinds: Mapping[str, Callable[[T], Any]]) -> dict[str, T]:
    """Return the first value of each kind; the test fails if a kind does not occur.

    Args:
        strategy: Draws the values.
        kinds: For each name, whether a value is of this kind.
    """
    found: dict[str, T] = {}

    def completes(value: T) -> bool:
        found.update({name: value for name, fits in kinds.items() if name not in found and fits(value)})
        return len(found) == len(kinds)

    try:
        find(strategy, completes, settings=SEARCH)
    except NoSuchExample:
        pytest.fail(f"these do not occur: {sorted(kinds.keys() - found.keys())}")
    return found
