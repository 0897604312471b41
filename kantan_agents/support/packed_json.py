"""Data as JSON, even with invalid Unicode."""

from __future__ import annotations

import re
from typing import Any

import msgspec

_HALF_A_PAIR = re.compile("[\ud800-\udfff]")


def packed_json(data: Any) -> bytes:
    """Values that JSON does not have become strings."""
    try:
        return msgspec.json.encode(data, enc_hook=str)
    except UnicodeEncodeError:
        # Half of a surrogate pair, as a model may send it.
        return msgspec.json.encode(_whole(msgspec.to_builtins(data, enc_hook=str)))


def _whole(data: Any) -> Any:
    if isinstance(data, str):
        return _HALF_A_PAIR.sub("\ufffd", data)
    if isinstance(data, dict):
        return {_whole(key): _whole(value) for key, value in data.items()}
    return [_whole(one) for one in data] if isinstance(data, list) else data
