"""The static types of ``output_type``, from which checkers infer the type of an agent's final output.

Type checkers have no common type for all type expressions yet, so some of these protocols describe a kind of
value by its attributes. ``__getattribute__`` returns ``Any`` on every object, so it infers ``Any``.
"""

from __future__ import annotations

from collections.abc import KeysView
from typing import Protocol, TypeAlias

from kantan_agents.core.pipeline import OutputT_co


class SchemaObject(Protocol[OutputT_co]):
    """The SDK's ``AgentOutputSchemaBase``: the output has the return type of ``validate_json``, ``Any``."""

    def validate_json(self, json_str: str, /) -> OutputT_co:
        """Parse a JSON text and return its value."""
        ...


class JSONSchema(Protocol[OutputT_co]):
    """A JSON Schema as a dict: the output is ``Any``, since a schema may describe any value."""

    def keys(self) -> KeysView[str]:
        """Return the schema's keywords."""
        ...

    def __getattribute__(self, name: str, /) -> OutputT_co: ...


class UnionExpression(Protocol[OutputT_co]):
    """A union such as ``Report | Refusal``: the output is ``Any``."""

    @property
    def __args__(self) -> tuple[OutputT_co, ...]: ...


class SpecialForm(Protocol[OutputT_co]):
    """Special forms such as ``Literal[...]`` and ``Union[...]``, as mypy sees them: the output is ``Any``."""

    def __getitem__(self, parameters: object, /) -> object: ...

    def __getattribute__(self, name: str, /) -> OutputT_co: ...


OutputType: TypeAlias = (
    type[OutputT_co]
    | SchemaObject[OutputT_co]
    | JSONSchema[OutputT_co]
    | UnionExpression[OutputT_co]
    | SpecialForm[OutputT_co]
)
"""The type of the ``output_type`` argument. For a class, the final output is an instance of it."""
