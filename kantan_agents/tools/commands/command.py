"""``Command``: a command that a person can run by name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import attrs

from kantan_agents.errors import CommandSyntaxError
from kantan_agents.tools.commands.binding import ParameterNames
from kantan_agents.tools.commands.checking import compile_checker
from kantan_agents.tools.commands.line import PREFIX
from kantan_agents.tools.commands.parameters import Parameter, parameters_of
from kantan_agents.tools.commands.reading import Signature, UnreadableArgumentsError


@attrs.frozen(slots=False, eq=False)
class Command:
    """A command with a name and typed parameters; ``read`` parses what a person typed after the name.

    Attributes:
        name: Name of the command, without the prefix.
        description: What the command does; lists show the first line.
        schema: JSON Schema of the arguments, an object with ``properties``.
        target: The tool, function or other object to run. This package does not use it.
        aliases: Other names of the command.
    """

    name: str
    description: str = ""
    schema: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    target: Any = attrs.field(default=None, repr=False)
    aliases: tuple[str, ...] = ()

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters, in the order of the schema."""
        return parameters_of(self.schema)

    @cached_property
    def _signature(self) -> Signature:
        parameters = self.parameters
        checker = compile_checker(self.schema, parameters) if self.schema else None
        return Signature(self.schema, parameters, ParameterNames(parameters), checker)

    def usage(self, prefix: str = PREFIX) -> str:
        """Return the usage line of the command: ``/read PATH [--limit LIMIT]``."""
        if len(self.parameters) == 1:
            return f"{prefix}{self.name} {self.parameters[0].only_usage}"
        return " ".join([f"{prefix}{self.name}", *(parameter.usage for parameter in self.parameters)])

    def read(self, rest: str, prefix: str = PREFIX) -> dict[str, Any]:
        """Parse the arguments of the command.

        Args:
            rest: The text after the name: ``notes.txt --limit 5``, ``path=notes.txt``, or a JSON object.
            prefix: The prefix of commands, for the usage in errors.

        Raises:
            CommandSyntaxError: E55, with every problem, each naming its parameter, and the usage.

        Returns:
            The arguments with the types of the schema, such as ``{"path": "notes.txt", "limit": 5}``.
        """
        try:
            return self._signature.read(rest.strip())
        except UnreadableArgumentsError as error:
            raise CommandSyntaxError(
                command=f"{prefix}{self.name}",
                problems=error.problems,
                usage=self.usage(prefix),
            ) from None
