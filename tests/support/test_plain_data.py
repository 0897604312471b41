"""Plain data can be packed and comes out as it was; all else is told."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.support.plain_data import is_plain, packed, unpacked

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
PLAIN = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


@given(value=PLAIN)
def test_it_comes_out_as_it_was(value: Any) -> None:
    data = packed(value)
    assert data is not None
    assert repr(unpacked(data)) == repr(value)


@given(value=PLAIN, other=PLAIN)
def test_only_equal_data_is_packed_alike(value: Any, other: Any) -> None:
    assert (packed(value) == packed(other)) == (repr(value) == repr(other))


def test_one_and_true_are_told_apart() -> None:
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
def test_what_is_not_plain_is_told_wherever_it_stands(value: Any) -> None:
    assert packed(value) is packed([value]) is packed({"a": {"b": value}}) is None
    if isinstance(value, str):
        assert packed({value: 1}) is None


def test_what_may_stand_for_a_list_can_be_said() -> None:
    value = {"a": (1, [2])}
    assert packed(value) is None
    data = packed(value, (list, tuple))
    assert data is not None
    assert unpacked(data) == value


def test_what_is_within_itself_is_told() -> None:
    around: list[Any] = []
    around.append(around)
    assert packed(around) is None
    with pytest.raises(RecursionError):
        is_plain(around)
