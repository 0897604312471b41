"""What ``output_type`` may be, for type checkers: it decides the type of an agent's final output.

No checker knows a type for every type expression yet, so some of these protocols describe a kind of value by
what it has. ``__getattribute__`` stands for "the output may be anything": on every object it returns ``Any``.
"""

from __future__ import annotations

from collections.abc import KeysView
from typing import Protocol, TypeAlias

from kantan_agents.pipeline import OutputT_co


class SchemaObject(Protocol[OutputT_co]):
    """The SDK's ``AgentOutputSchemaBase``: the output is what it validates, ``Any``."""

    def validate_json(self, json_str: str, /) -> OutputT_co:
        """Return the value of a JSON text."""
        ...


class JSONSchema(Protocol[OutputT_co]):
    """A JSON Schema as a dict: the output is ``Any``, because a schema may describe any value."""

    def keys(self) -> KeysView[str]:
        """Return the schema's keywords."""
        ...

    def __getattribute__(self, name: str, /) -> OutputT_co: ...


class UnionExpression(Protocol[OutputT_co]):
    """A union such as ``Report | Refusal``: ``Any``."""

    @property
    def __args__(self) -> tuple[OutputT_co, ...]: ...


class SpecialForm(Protocol[OutputT_co]):
    """``Literal[...]``, ``Union[...]`` and the like, as mypy sees them: ``Any``."""

    def __getitem__(self, parameters: object, /) -> object: ...

    def __getattribute__(self, name: str, /) -> OutputT_co: ...


OutputType: TypeAlias = (
    type[OutputT_co]
    | SchemaObject[OutputT_co]
    | JSONSchema[OutputT_co]
    | UnionExpression[OutputT_co]
    | SpecialForm[OutputT_co]
)
"""A value for ``output_type``; a class makes the final output an instance of it."""
