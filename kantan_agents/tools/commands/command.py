"""A command that a user can run by name."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

import attrs

from kantan_agents.errors import CommandSyntaxError
from kantan_agents.tool_rules import read_json
from kantan_agents.tools.commands.binding import Binding, GivenText, ParameterNames
from kantan_agents.tools.commands.line import PREFIX
from kantan_agents.tools.commands.parameters import Parameter, parameters_of
from kantan_agents.tools.commands.problems import CommandProblems, compile_checker, find_problems
from kantan_agents.tools.commands.tokens import UnbalancedQuoteError, is_all_quoted, tokens_of
from kantan_agents.tools.commands.values import shown


@attrs.frozen(slots=False, eq=False)
class Command:
    """A command with a name and typed parameters; ``read`` parses the text typed after the name.

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
    def _signature(self) -> _Signature:
        parameters = self.parameters
        checker = compile_checker(self.schema, parameters) if self.schema else None
        return _Signature(self.schema, parameters, ParameterNames(parameters), checker)

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
        except _UnreadableArgumentsError as error:
            raise CommandSyntaxError(
                command=f"{prefix}{self.name}",
                problems=error.problems,
                usage=self.usage(prefix),
            ) from None


class _UnreadableArgumentsError(Exception):
    """The arguments of a command are invalid; ``problems`` has every problem."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@attrs.frozen(eq=False)
class _Signature:
    """A command's parameters, prepared for parsing; ``checker`` is None for a bad schema."""

    schema: Mapping[str, Any]
    parameters: tuple[Parameter, ...]
    names: ParameterNames
    checker: Any

    def read(self, rest: str) -> dict[str, Any]:
        problems = CommandProblems()
        arguments = self._object(rest, problems) if rest.startswith("{") else self._texts(rest, problems)
        for parameter in self.parameters:
            name = parameter.name
            if parameter.is_required and name not in arguments and name not in problems.about:
                problems.add("is missing", name)
            elif parameter.is_null_unless_given and name not in problems.about:
                arguments.setdefault(name, None)
        find_problems(self.checker, arguments, problems)
        if problems:
            raise _UnreadableArgumentsError(problems.texts())
        return arguments

    def _object(self, rest: str, problems: CommandProblems) -> dict[str, Any]:
        arguments = _json_object(rest)
        if self._open_schema is None:
            known = {parameter.name for parameter in self.parameters}
            for key in [key for key in arguments if key not in known]:
                problems.add(f"there is no parameter {shown(key)}")
                del arguments[key]
        return arguments

    def _texts(self, rest: str, problems: CommandProblems) -> dict[str, Any]:
        whole = self._whole_text(rest)
        if whole is not None:
            return whole
        try:
            tokens = tokens_of(rest)
        except UnbalancedQuoteError as error:
            raise _UnreadableArgumentsError([error.reason]) from None
        binding = Binding(self.names, problems, is_open=self._open_schema is not None)
        binding.bind(tokens, rest)
        arguments: dict[str, Any] = {}
        for parameter in self.parameters:
            if parameter.name in binding.given:
                given = binding.given[parameter.name]
                _set(arguments, parameter.name, given, parameter, problems)
        for name, given in binding.extra.items():
            _set(arguments, name, given, Parameter(name, self._open_schema or {}, self.schema), problems)
        return arguments

    def _whole_text(self, rest: str) -> dict[str, Any] | None:
        """Return ``rest`` as the only parameter's value; None if it must be split."""
        if len(self.parameters) != 1 or not self.parameters[0].takes_text or not rest:
            return None
        only = self.parameters[0]
        if rest.startswith("-- "):
            return {only.name: only.read(rest[3:].strip())}
        named = rest.split(maxsplit=1)[0].split("=", 1)
        is_named = len(named) > 1 or named[0].startswith("--")
        if is_named and self.names.find_parameter(named[0].removeprefix("--")) is not None:
            return None
        if is_all_quoted(rest):
            return None
        return {only.name: only.read(rest)}

    @property
    def _open_schema(self) -> Mapping[str, Any] | None:
        more = self.schema.get("additionalProperties")
        if more is True or self.schema.get("patternProperties"):
            return {}
        return more if isinstance(more, Mapping) else None


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = read_json(text)
    except RecursionError:
        raise _UnreadableArgumentsError(["the JSON object is nested too deeply"]) from None
    except ValueError as error:
        reason = f"this is not a JSON object: {error}; put a text that begins with {{ in quotes"
        raise _UnreadableArgumentsError([reason]) from None
    return value  # type: ignore[no-any-return]  # JSON with a leading brace is an object


def _set(
    arguments: dict[str, Any],
    name: str,
    given: list[GivenText],
    parameter: Parameter,
    problems: CommandProblems,
) -> None:
    try:
        if parameter.is_list:
            arguments[name] = _list(given, parameter)
        elif len(given) == 1:
            arguments[name] = parameter.read(given[0].text)
        elif given:
            problems.add(f"is given {len(given)} times", name)
    except ValueError as error:
        problems.add(str(error), name)


def _list(given: list[GivenText], parameter: Parameter) -> list[Any]:
    texts = [one.text for one in given]
    if len(given) == 1:
        if texts[0].startswith("["):
            with suppress(ValueError):
                return parameter.read(texts[0])  # type: ignore[no-any-return]
        if not given[0].is_whole and not texts[0].startswith("["):
            texts = [piece.strip() for piece in texts[0].split(",")]
    return [parameter.read_item(text) for text in texts]
