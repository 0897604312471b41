"""``as_dict``: structured outputs as plain dicts (spec 11)."""

from __future__ import annotations

import dataclasses
from typing import Any

import attrs
from pydantic import BaseModel
from pydantic_core import to_jsonable_python


def as_dict(output: Any, *, json: bool = False) -> dict[str, Any] | None:
    """Return a structured output as a dict; None for a text, a list or another value without fields.

    Nested models, dataclasses and attrs classes become dicts too.

    Args:
        output: The SDK's ``final_output``.
        json: Whether to convert values to JSON types, such as a date to text, as a trace requires.
    """
    if output is None or isinstance(output, (str, type)):
        return None
    if isinstance(output, BaseModel):
        dumped = output.model_dump(mode="json" if json else "python")
        return dumped if isinstance(dumped, dict) else None  # a RootModel may hold anything
    if not (isinstance(output, dict) or dataclasses.is_dataclass(output) or attrs.has(type(output))):
        return None
    plain: dict[str, Any] = _plain(output)
    if json and plain is not output:
        plain = to_jsonable_python(plain, fallback=str, bytes_mode="base64")
    return plain


def _plain(value: Any) -> Any:
    """Return a value with objects with fields replaced by dicts; the same value if it contains none."""
    if isinstance(value, BaseModel):
        return value.model_dump()
    if isinstance(value, type):
        return value
    if attrs.has(type(value)):
        return {field.name: _plain(getattr(value, field.name)) for field in attrs.fields(type(value))}
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        plain = {key: _plain(inner) for key, inner in value.items()}
        return plain if any(plain[key] is not value[key] for key in plain) else value
    if type(value) in (list, tuple):
        items = [_plain(inner) for inner in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else type(value)(items)
    return value
