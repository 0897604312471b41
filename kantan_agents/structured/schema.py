"""Structured output: the schema the SDK sees, and its results as plain dicts (spec 11)."""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from typing import Any, ClassVar, cast

import attrs
from agents import AgentOutputSchema, AgentOutputSchemaBase
from pydantic import BaseModel


class OutputSchema(AgentOutputSchema):
    """The SDK's own schema object, without the cost of being taken apart on every run.

    The SDK computes each agent's identity twice a run and walks every field of every dataclass on it,
    here a whole JSON schema. An object that declares no fields is identified by its type alone, which
    is a third of the cost of a structured run, while it stays an ``AgentOutputSchema`` to the SDK.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]] = {}

    @classmethod
    def adopt(cls, schema: AgentOutputSchema) -> OutputSchema:
        """Return an ``OutputSchema`` that behaves as ``schema`` does."""
        adopted = cls.__new__(cls)
        adopted.__dict__.update(vars(schema))
        return adopted


@lru_cache(maxsize=256)
def _schema_of(output_type: Any) -> OutputSchema:
    return OutputSchema(output_type)


def output_schema(output_type: Any) -> AgentOutputSchemaBase | None:
    """Return what goes into the SDK agent's ``output_type``; built once per type and process.

    Args:
        output_type: A type, a schema object of the SDK, or None or str for plain text.
    """
    if output_type is None or output_type is str:
        return None
    if type(output_type) is AgentOutputSchema:
        return OutputSchema.adopt(output_type)
    if isinstance(output_type, AgentOutputSchemaBase):
        return output_type
    try:
        return _schema_of(output_type)
    except TypeError:  # an unhashable annotation; anything else fails again, with its own message
        return OutputSchema(output_type)


def as_dict(output: Any, *, json: bool = False) -> dict[str, Any] | None:
    """Return a structured output as a dict, or None where it is none (a text, a list, ...).

    Args:
        output: What the SDK gives as ``final_output``.
        json: Whether values must be JSON (a date as text), as a trace needs it, rather than Python's.
    """
    if output is None or isinstance(output, str):
        return None
    if isinstance(output, dict):
        return output
    if isinstance(output, BaseModel):
        return output.model_dump(mode="json" if json else "python")
    if isinstance(output, type):
        return None
    if dataclasses.is_dataclass(output):
        return dataclasses.asdict(cast("Any", output))
    if attrs.has(type(output)):
        return attrs.asdict(output)
    return None
