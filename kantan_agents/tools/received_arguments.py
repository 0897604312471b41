"""The arguments that the function behind a tool receives, after pydantic's conversion.

They may differ from the model's JSON: defaults, names (an alias, ``**kwargs``), converted values. So
parameter rules check both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from inspect import Parameter
from typing import Any

import attrs
from agents import FunctionTool
from agents.function_schema import FuncSchema

from kantan_agents.tools.python_as_json import JSONReader

_MISSING = object()
_PLAIN = (str, int, float, bool)

Received = Callable[[Mapping[str, Any]], "list[dict[str, Any]]"]
"""Returns each reading of a call's arguments."""


def received_by(tool: FunctionTool) -> Received | None:
    """Return None without a function."""
    schema = schema_behind(tool)
    return None if schema is None else _Receiver(schema)


def schema_behind(tool: FunctionTool) -> FuncSchema | None:
    """Return the SDK's schema."""
    # The schema exists only in the SDK's closure; no public access exists.
    implementation = getattr(tool.on_invoke_tool, "_invoke_tool_impl", None)
    for cell in getattr(implementation, "__closure__", None) or ():
        try:
            schema = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
        if isinstance(schema, FuncSchema):
            return schema
    return None


def is_unchanged(received: Received, arguments: Mapping[str, Any]) -> bool:
    """Return whether a function certainly receives the model's arguments; calls no validators."""
    if not isinstance(received, _Receiver) or received.plain is None:
        return False
    types = received.plain
    is_same = all(type(value) is types.get(name, _MISSING) for name, value in arguments.items())
    return is_same and received.required <= arguments.keys()  # without one of them, the call fails


@attrs.frozen(eq=False)
class _Receiver:
    """Converts like the SDK."""

    schema: FuncSchema

    def __call__(self, arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return one reading for each way to name arguments; empty if invalid."""
        try:
            model = self.schema.params_pydantic_model(**arguments)
        except Exception:  # noqa: BLE001 - a validator is user code
            return []  # the call will fail in the same way
        reader = JSONReader(by_python_name=False)
        read = [self._as_called(reader.model(model, arguments), last=False)]
        if reader.is_ambiguous or self._takes_more:
            other = JSONReader(by_python_name=True).model(model, arguments)
            read.append(self._as_called(other, last=True))
        return read

    @cached_property
    def plain(self) -> dict[str, Any] | None:
        """The types of the parameters if all are JSON types without validators."""
        fields = self.schema.params_pydantic_model.model_fields
        is_plain = all(
            field.annotation in _PLAIN
            and not field.metadata
            and field.validation_alias is None
            and field.default_factory is None
            for field in fields.values()
        )
        if self._takes_more or not is_plain:
            return None
        return {
            name: field.annotation for name, field in fields.items() if isinstance(field.annotation, type)
        }

    @cached_property
    def required(self) -> frozenset[str]:
        fields = self.schema.params_pydantic_model.model_fields
        return frozenset(name for name, field in fields.items() if field.is_required())

    @property
    def _takes_more(self) -> bool:
        return any(one.kind is Parameter.VAR_KEYWORD for one in self.schema.signature.parameters.values())

    def _as_called(self, values: dict[str, Any], *, last: bool) -> dict[str, Any]:
        """``last``: entries of ``**kwargs`` win over parameters."""
        for name, parameter in self.schema.signature.parameters.items():
            more = values.get(name) if parameter.kind is Parameter.VAR_KEYWORD else None
            if isinstance(more, dict):
                values = {**values, **more} if last else {**more, **values}
        return values
