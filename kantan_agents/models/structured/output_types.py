"""Static types of ``output_type``, for the final output's type.

No common type covers all type expressions yet. ``__getattribute__`` returns ``Any`` on every object, so
checkers infer ``Any``.
"""

from __future__ import annotations

from collections.abc import KeysView
from typing import Protocol, TypeAlias

from kantan_agents.core.pipeline import OutputT_co


class SchemaObject(Protocol[OutputT_co]):
    """The SDK's ``AgentOutputSchemaBase``: the output is the ``Any`` of ``validate_json``."""

    def validate_json(self, json_str: str, /) -> OutputT_co:
        """Return the value of a JSON text."""
        ...


class JSONSchema(Protocol[OutputT_co]):
    """A JSON Schema as a dict: the output is ``Any``."""

    def keys(self) -> KeysView[str]:
        """Return the schema's keywords."""
        ...

    def __getattribute__(self, name: str, /) -> OutputT_co: ...


class UnionExpression(Protocol[OutputT_co]):
    """A union such as ``Report | Refusal``: the output is ``Any``."""

    @property
    def __args__(self) -> tuple[OutputT_co, ...]: ...


class SpecialForm(Protocol[OutputT_co]):
    """``Literal[...]``, ``Union[...]`` and the like in mypy: the output is ``Any``."""

    def __getitem__(self, parameters: object, /) -> object: ...

    def __getattribute__(self, name: str, /) -> OutputT_co: ...


OutputType: TypeAlias = (
    type[OutputT_co]
    | SchemaObject[OutputT_co]
    | JSONSchema[OutputT_co]
    | UnionExpression[OutputT_co]
    | SpecialForm[OutputT_co]
)
"""The type of ``output_type``. A class's final output is its instance."""
