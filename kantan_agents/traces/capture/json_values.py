"""The types of the JSON data in a record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    JSONValue: TypeAlias = "str | int | float | bool | Sequence[JSONValue] | Mapping[str, JSONValue] | None"
    """Any value that JSON has."""

    Items: TypeAlias = "str | Sequence[Mapping[str, JSONValue]]"
    """The input of a run or of a model: a text, or the SDK's input items."""
else:
    # What reads damaged files by these types does not look into JSON data.
    JSONValue = Items = Any
