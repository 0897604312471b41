"""``Command``: one thing a person can have done by its name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import attrs

from kantan_agents.commands.binding import Names
from kantan_agents.commands.checking import checker_of
from kantan_agents.commands.line import PREFIX
from kantan_agents.commands.parameters import Parameter, parameters_of
from kantan_agents.commands.reading import Signature, UnreadableArgumentsError
from kantan_agents.errors import CommandSyntaxError


@attrs.frozen(slots=False, eq=False)
class Command:
    """A command: its name, what it takes, and what is behind it.

    Attributes:
        name: What it is called by, without the prefix.
        description: What it does; the first line stands in lists.
        schema: JSON Schema of its arguments, an object with ``properties``.
        target: What is run: a tool, a function, anything. The registry does not look at it.
        aliases: Other names for it.
    """

    name: str
    description: str = ""
    schema: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    target: Any = attrs.field(default=None, repr=False)
    aliases: tuple[str, ...] = ()

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Its parameters, in the order of the schema."""
        return parameters_of(self.schema)

    @cached_property
    def _signature(self) -> Signature:
        parameters = self.parameters
        checker = checker_of(self.schema, parameters) if self.schema else None
        return Signature(self.schema, parameters, Names(parameters), checker)

    def usage(self, prefix: str = PREFIX) -> str:
        """Return the line that shows how it is written: ``/read PATH [--limit LIMIT]``."""
        if len(self.parameters) == 1:
            return f"{prefix}{self.name} {self.parameters[0].only_usage}"
        return " ".join([f"{prefix}{self.name}", *(parameter.usage for parameter in self.parameters)])

    def read(self, rest: str, prefix: str = PREFIX) -> dict[str, Any]:
        """Return the arguments that stand behind the name.

        Args:
            rest: What was typed behind the name: ``notes.txt --limit 5``, ``path=notes.txt``, or a JSON
                object.
            prefix: What commands begin with, for the usage in errors.

        Raises:
            CommandSyntaxError: E55, with every mistake, each naming its parameter, and the usage.

        Returns:
            The arguments as the schema wants them, such as ``{"path": "notes.txt", "limit": 5}``.
        """
        try:
            return self._signature.read(rest.strip())
        except UnreadableArgumentsError as error:
            raise CommandSyntaxError(
                command=f"{prefix}{self.name}",
                problems=error.problems,
                usage=self.usage(prefix),
            ) from None
