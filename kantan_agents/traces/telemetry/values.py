"""Turns any value into an attribute: masked and encodable.

Otherwise it would lose its whole batch of spans.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from kantan_agents.support.secrets import MASK, is_named_secret
from kantan_agents.support.storable_text import whole_text
from kantan_agents.traces.recorder.masking import mask_data, mask_text
from kantan_agents.traces.recorder.plain_json import decode, encode, encode_anything

AttributeValue: TypeAlias = "str | bool | int | float | list[str] | list[bool] | list[int] | list[float]"

_LARGEST = 2**63
_SCALARS = (str, bool, int, float)


@lru_cache(maxsize=1_024)
def name_value(name: str) -> str:
    """Cache ``text_value`` for names of agents, tools and models."""
    return text_value(name)


def text_value(text: str) -> str:
    """Mask secrets, and drop halves of surrogate pairs, which UTF-8 lacks."""
    return whole_text(mask_text(str(text)))


def attribute_value(value: Any) -> AttributeValue | None:
    """Return scalars and lists of scalars unchanged, other data as JSON."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return text_value(value)
    if isinstance(value, int):
        return int(value) if -_LARGEST <= value < _LARGEST else str(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    if isinstance(value, (list, tuple)) and value and type(value[0]) in _SCALARS:
        kind = type(value[0])
        if all(type(one) is kind for one in value):
            found = [attribute_value(one) for one in value]
            if all(type(one) is kind for one in found):
                return found  # type: ignore[return-value]
    return json_text(value)


def named_value(name: str, value: Any) -> AttributeValue | None:
    """Return the value of an attribute, masked if it is secret."""
    if type(value) is str and is_named_secret(name, value):
        return MASK
    return attribute_value(value) if isinstance(value, _SCALARS) else attribute_value(_masked(name, value))


def attributes_of(values: Mapping[str, Any], prefix: str = "") -> dict[str, AttributeValue]:
    """Return the attributes for a mapping, without None."""
    found: dict[str, AttributeValue] = {}
    for name, value in values.items():
        made = named_value(name, value)
        if made is not None:
            found[prefix + (name if name.isascii() else text_value(name))] = made
    return found


def json_text(value: Any) -> str:
    """Encode data with its secrets masked."""
    return whole_text(encode(_masked("", value)))


def _masked(name: str, value: Any) -> Any:
    return mask_data(decode(encode_anything(value)), name=name)
