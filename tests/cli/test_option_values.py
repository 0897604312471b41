"""Values of options: each is what Typer itself turns it into, with the same error if it is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from typer.core import TyperGroup

from kantan_agents.cli.app import make_commands

ONE = (None, "x", "5", "5.5", "-1", "", "a/b", "\udcff", "postgresql://host/name", "postgresql://")
SEVERAL = (None, (), ("a", "b"), ("5",), ("",), ("\udcff",))


def parameters(group: Any) -> Iterator[Any]:
    """Yield the parameters of all commands, without those that print something."""
    yield from (parameter for parameter in group.params if parameter.callback is None)
    for name in getattr(group, "commands", ()):
        yield from parameters(group.commands[name])


def outcome(process: Any, parameter: Any, context: Any, value: Any) -> tuple[str, Any]:
    """Return the value with its type, or the error with its message."""
    try:
        result = process(parameter, context, value)
    except Exception as error:  # noqa: BLE001 - errors are compared as well
        return type(error).__name__, getattr(error, "message", str(error))
    return type(result).__name__, result


def test_values_and_errors_are_those_of_typer() -> None:
    compared = 0
    for parameter in parameters(make_commands()):
        if not hasattr(parameter, "type_descriptor"):
            pytest.skip("older versions of Typer convert without pydantic")
        context = TyperGroup.context_class(make_commands(), info_name="kantan-agents")
        values = SEVERAL if parameter.multiple or parameter.nargs == -1 else ONE
        for value in (parameter.default, *values):
            ours = outcome(lambda one, *given: one.process_value(*given), parameter, context, value)
            assert ours == outcome(type(parameter).process_value, parameter, context, value), parameter.name
            compared += 1
    assert compared > 1_000
