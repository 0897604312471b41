"""The parameters of a command, read from the JSON Schema of a tool."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import attrs

from kantan_agents.commands.shapes import choices_of, leaves_of, types_of
from kantan_agents.commands.values import ValueReader, spelled, takes_text

_CHOICES_SHOWN = 6
_WORDS = {"string": "text", "null": "nothing", "array": "list"}


@attrs.frozen(slots=False, eq=False)
class Parameter:
    """One parameter.

    Attributes:
        name: Its name, as the schema spells it.
        schema: What the schema says about it.
        root: The schema it stands in.
        is_required: Whether a call must give it: the schema requires it, says no default, and takes no null.
        is_null_unless_given: Whether it must be there, and is null where it is not given.
    """

    name: str
    schema: Mapping[str, Any]
    root: Mapping[str, Any] = attrs.field(repr=False)
    is_required: bool = False
    is_null_unless_given: bool = False

    @cached_property
    def types(self) -> frozenset[str]:
        """The JSON types it takes, ``null`` left out; empty if the schema does not say."""
        leaves = leaves_of(self.schema, self.root)
        if any(not types_of(leaf) for leaf in leaves):
            return frozenset()
        return frozenset(kind for leaf in leaves for kind in types_of(leaf) if kind != "null")

    @property
    def takes_rest(self) -> bool:
        """Whether, in the last place, it takes all that is left, white space included."""
        return self.takes_text or bool(self.types & {"array", "object"})

    @property
    def is_flag(self) -> bool:
        """Whether it is switched on and off."""
        return self.types == {"boolean"}

    @property
    def is_list(self) -> bool:
        """Whether it takes a list, and nothing else."""
        return self.types == {"array"}

    @cached_property
    def takes_text(self) -> bool:
        """Whether any text is a value of it."""
        return takes_text(self.schema, self.root)

    @cached_property
    def read(self) -> ValueReader:
        """Reads a text that is given for it."""
        return ValueReader(self.schema, self.root)

    @cached_property
    def read_item(self) -> ValueReader:
        """Reads a text that is given for one item of its list."""
        leaf = next((leaf for leaf in leaves_of(self.schema, self.root) if "array" in types_of(leaf)), {})
        items = leaf.get("items")
        return ValueReader(items if isinstance(items, Mapping) else {}, self.root)

    @cached_property
    def choices(self) -> list[Any]:
        """The values the schema lists, ``null`` left out."""
        listed = [choice for leaf in leaves_of(self.schema, self.root) for choice in choices_of(leaf) or ()]
        return [choice for choice in listed if choice is not None]

    @property
    def default(self) -> Any:
        """What it is without being given; None where the schema does not say."""
        return self.schema.get("default")

    @property
    def option(self) -> str:
        """How it is written as an option: ``--dry-run``."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def kind(self) -> str:
        """What it takes, in a word or two."""
        if self.choices:
            listed = " | ".join(map(spelled, self.choices[:_CHOICES_SHOWN]))
            return f"{listed} | ..." if len(self.choices) > _CHOICES_SHOWN else listed
        return " or ".join(_WORDS.get(kind, kind) for kind in sorted(self.types)) or "anything"

    @property
    def usage(self) -> str:
        """How it stands in a line that shows the usage."""
        if self.is_flag:
            return f"{self.option}|--no-{self.option[2:]}" if self.is_required else f"[{self.option}]"
        if self.is_required:
            return f"{self._placeholder}..." if self.is_list else self._placeholder
        return f"[{self.option} {self._placeholder}]"

    @property
    def only_usage(self) -> str:
        """How it stands in such a line where there is no other: nobody needs its name then."""
        if self.is_flag or self.is_required:
            return self.usage
        return f"[{self._placeholder}...]" if self.is_list else f"[{self._placeholder}]"

    @property
    def _placeholder(self) -> str:
        if self.choices and len(self.choices) <= _CHOICES_SHOWN:
            return "|".join(map(spelled, self.choices))
        return self.name.replace("-", "_").upper()


def parameters_of(schema: Mapping[str, Any]) -> tuple[Parameter, ...]:
    """Return the parameters a JSON Schema of an object has, in its order."""
    properties = schema.get("properties")
    required = schema.get("required")
    listed = required if isinstance(required, (list, tuple)) else ()
    names = {name for name in listed if isinstance(name, str)}
    parameters = []
    for name, found in (properties if isinstance(properties, Mapping) else {}).items():
        said = found if isinstance(found, Mapping) else {}
        # The SDK's strict schemas require everything, what has a default too, and say no default of None.
        is_wanted = name in names and "default" not in said
        takes_null = is_wanted and any("null" in types_of(leaf) for leaf in leaves_of(said, schema))
        parameters.append(Parameter(str(name), said, schema, is_wanted and not takes_null, takes_null))
    return tuple(parameters)
