"""Parameters of a command, from a JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import attrs

from kantan_agents.tools.commands.schemas import choices_of, leaves_of, types_of
from kantan_agents.tools.commands.values import ValueReader, spelled, takes_text

_CHOICES_SHOWN = 6
_WORDS = {"string": "text", "null": "nothing", "array": "list"}


@attrs.frozen(slots=False, eq=False)
class Parameter:
    """One parameter of a command.

    Attributes:
        name: Name of the parameter, as in the schema.
        schema: The parameter's own schema.
        root: The whole schema, for references.
        is_required: Whether a call must give it: the schema requires it, has no default, and allows no null.
        is_null_unless_given: Whether the schema requires it and allows null, which is then its default.
    """

    name: str
    schema: Mapping[str, Any]
    root: Mapping[str, Any] = attrs.field(repr=False)
    is_required: bool = False
    is_null_unless_given: bool = False

    @cached_property
    def types(self) -> frozenset[str]:
        """The JSON types of its values, without ``null``; empty if the schema does not restrict them."""
        leaves = leaves_of(self.schema, self.root)
        if any(not types_of(leaf) for leaf in leaves):
            return frozenset()
        return frozenset(kind for leaf in leaves for kind in types_of(leaf) if kind != "null")

    @property
    def takes_rest(self) -> bool:
        """Whether, as the last parameter, it takes the whole rest of the text, including white space."""
        return self.takes_text or bool(self.types & {"array", "object"})

    @property
    def is_flag(self) -> bool:
        """Whether its values are only true and false."""
        return self.types == {"boolean"}

    @property
    def is_list(self) -> bool:
        """Whether its values are only lists."""
        return self.types == {"array"}

    @cached_property
    def takes_text(self) -> bool:
        """Whether any string is a valid value."""
        return takes_text(self.schema, self.root)

    @cached_property
    def read(self) -> ValueReader:
        """Converts a string to its value."""
        return ValueReader(self.schema, self.root)

    @cached_property
    def read_item(self) -> ValueReader:
        """Converts a string to one item of its list."""
        leaf = next((leaf for leaf in leaves_of(self.schema, self.root) if "array" in types_of(leaf)), {})
        items = leaf.get("items")
        return ValueReader(items if isinstance(items, Mapping) else {}, self.root)

    @cached_property
    def choices(self) -> list[Any]:
        """The values that the schema lists, without ``null``."""
        listed = [choice for leaf in leaves_of(self.schema, self.root) for choice in choices_of(leaf) or ()]
        return [choice for choice in listed if choice is not None]

    @property
    def default(self) -> Any:
        """Its default value; None if the schema has none."""
        return self.schema.get("default")

    @property
    def option(self) -> str:
        """Its option: ``--dry-run``."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def kind(self) -> str:
        """A short description of its values."""
        if self.choices:
            listed = " | ".join(map(spelled, self.choices[:_CHOICES_SHOWN]))
            return f"{listed} | ..." if len(self.choices) > _CHOICES_SHOWN else listed
        return " or ".join(_WORDS.get(kind, kind) for kind in sorted(self.types)) or "anything"

    @property
    def usage(self) -> str:
        """Its part of the usage line."""
        if self.is_flag:
            return f"{self.option}|--no-{self.option[2:]}" if self.is_required else f"[{self.option}]"
        if self.is_required:
            return f"{self._placeholder}..." if self.is_list else self._placeholder
        return f"[{self.option} {self._placeholder}]"

    @property
    def only_usage(self) -> str:
        """Its part of the usage line if it is the only parameter, which needs no name."""
        if self.is_flag or self.is_required:
            return self.usage
        return f"[{self._placeholder}...]" if self.is_list else f"[{self._placeholder}]"

    @property
    def _placeholder(self) -> str:
        if self.choices and len(self.choices) <= _CHOICES_SHOWN:
            return "|".join(map(spelled, self.choices))
        return self.name.replace("-", "_").upper()


def parameters_of(schema: Mapping[str, Any]) -> tuple[Parameter, ...]:
    """Return the parameters of a JSON Schema, in its order."""
    properties = schema.get("properties")
    required = schema.get("required")
    listed = required if isinstance(required, (list, tuple)) else ()
    names = {name for name in listed if isinstance(name, str)}
    parameters = []
    for name, found in (properties if isinstance(properties, Mapping) else {}).items():
        definition = found if isinstance(found, Mapping) else {}
        # The SDK's strict schemas require every parameter, and omit a default of None.
        is_needed = name in names and "default" not in definition
        takes_null = is_needed and any("null" in types_of(leaf) for leaf in leaves_of(definition, schema))
        parameters.append(Parameter(str(name), definition, schema, is_needed and not takes_null, takes_null))
    return tuple(parameters)
