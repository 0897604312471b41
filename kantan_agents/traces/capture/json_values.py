"""The types of the JSON data in a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

JSONValue: TypeAlias = "str | int | float | bool | Sequence[JSONValue] | Mapping[str, JSONValue] | None"
"""Any value that JSON has."""

Items: TypeAlias = "str | Sequence[Mapping[str, JSONValue]]"
"""The input of a run or of a model: a text, or the SDK's input items."""
