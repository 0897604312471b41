"""Copies function tools without converting equal schemas again."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping
from types import MethodType
from typing import Any

from agents import FunctionTool

from kantan_agents.models.plain_data import packed, unpacked

_LONGEST = 8_192
"""Longest schema that is cached, in bytes."""


def copy_function(tool: FunctionTool, fields: Mapping[str, Any] | None = None) -> FunctionTool:
    """Return a copy equal to ``copy.copy(tool)``.

    For each copy, the SDK converts the parameter schema to its strict form again. This function converts
    equal schemas once.

    Args:
        tool: The tool.
        fields: An earlier ``vars(tool)`` to copy instead of the current one; ignored for tools that are
            copied by the SDK.
    """
    # `copy.copy` adds 24 % to the first turn of 100 tools (`python -m benchmarks --only once_100`).

    # Subclasses may define their own copying, and the SDK binds a bound method again to the copy.
    if type(tool) is not FunctionTool or type(tool.on_invoke_tool) is MethodType:
        return copy.copy(tool)
    plain = FunctionTool.__new__(FunctionTool)
    vars(plain).update(vars(tool) if fields is None else fields)
    schema = _strict(plain.params_json_schema) if plain.strict_json_schema else None
    if schema is None:
        return copy.copy(plain)
    is_strict, plain.strict_json_schema = plain.strict_json_schema, False
    copied = copy.copy(plain)
    copied.strict_json_schema, copied.params_json_schema = is_strict, schema
    return copied


def _strict(schema: Any) -> dict[str, Any] | None:
    """Return the strict form of a schema as a new dict; None if it is not plain data or too long."""
    data = packed(schema)
    return unpacked(_strict_schema(data)) if data is not None and len(data) <= _LONGEST else None


@functools.lru_cache(maxsize=512)
def _strict_schema(schema: bytes) -> bytes:
    strict = FunctionTool("any", "", unpacked(schema), _not_called).params_json_schema
    data = packed(strict)
    if data is None:
        raise TypeError(f"the SDK has converted a schema to something other than JSON: {strict!r}")
    return data


async def _not_called(*_: Any) -> None:
    """Placeholder for the function of a tool of which only the schema is needed."""
