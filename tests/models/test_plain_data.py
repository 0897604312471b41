"""Plain data survives packing and unpacking; anything else is detected."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.models.plain_data import is_plain, packed, unpacked

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
PLAIN = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


@given(value=PLAIN)
def test_plain_data_survives_a_round_trip(value: Any) -> None:
    data = packed(value)
    assert data is not None
    assert repr(unpacked(data)) == repr(value)


@given(value=PLAIN, other=PLAIN)
def test_only_equal_data_has_equal_packed_forms(value: Any, other: Any) -> None:
    assert (packed(value) == packed(other)) == (repr(value) == repr(other))


def test_one_and_true_have_different_packed_forms() -> None:
    assert len({packed([1]), packed([1.0]), packed([True])}) == 3


class Text(str):
    __slots__ = ()


class Kind(str, enum.Enum):
    A = "a"


@pytest.mark.parametrize(
    "value",
    [
        Text("a"),
        Kind.A,
        np.str_("a"),
        np.float64(0.5),
        np.array([1]),
        b"a",
        bytearray(b"a"),
        (1,),
        {1},
        {1: 2},
    ],
    ids=repr,
)
def test_data_that_is_not_plain_is_detected_at_any_depth(value: Any) -> None:
    assert packed(value) is packed([value]) is packed({"a": {"b": value}}) is None
    if isinstance(value, str):
        assert packed({value: 1}) is None


def test_further_list_types_can_be_accepted() -> None:
    value = {"a": (1, [2])}
    assert packed(value) is None
    data = packed(value, (list, tuple))
    assert data is not None
    assert unpacked(data) == value


def test_data_that_contains_itself_is_detected() -> None:
    around: list[Any] = []
    around.append(around)
    assert packed(around) is None
    with pytest.raises(RecursionError):
        is_plain(around)
