"""Compares JSON data the way a reader would: ``1`` equals ``1.0``, and ``true`` does not equal ``1``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kantan_agents.lab.evaluation.dataset.json_data import NotJSONDataError, read_json


def same_data(one: Any, other: Any) -> bool:
    """Return whether two values are the same JSON data; the order of keys does not matter."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same_data(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same_data, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)


def data_in(value: Any) -> Any:
    """Return the JSON data in a text; the text itself if it is not JSON, and other values unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return read_json(value)
    except NotJSONDataError:
        return value
