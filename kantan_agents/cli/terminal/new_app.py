"""Creates the Typer application of a command group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


class _Command(TyperCommand):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for parameter in self.params:
            _convert_text_without_pydantic(parameter)

    def get_params(self, ctx: Any) -> Any:
        return _adapted(super().get_params(ctx))


class Group(TyperGroup):
    """A command group without types in its help."""

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters, without types."""
        return _adapted(super().get_params(ctx))


class _App(typer.Typer):
    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        return super().command(name, **{"cls": _Command, **options})


def new_app(**options: Any) -> typer.Typer:
    """Return an application that shows ``--json``, not ``--json <bool>``."""
    return _App(**{"cls": Group, "rich_markup_mode": "rich", **options})


def new_group(**options: Any) -> typer.Typer:
    """Return a group that shows its help without a command."""
    app = new_app(**options)
    app.callback(invoke_without_command=True)(_show_help)
    return app


def _show_help(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _adapted(parameters: Any) -> Any:
    for parameter in parameters:
        if parameter.name == "help":
            # Typer imports pydantic, which takes as long as showing the help, to convert None to a bool.
            parameter.default = False
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
        elif parameter.param_type_name == "argument":
            # An empty metavar would remove its name. Versions of Typer without this method show no type.
            parameter.display_type_rich = _no_type
    return parameters


def _no_type(ctx: Any) -> None:
    del ctx  # Typer passes it by this name


def _convert_text_without_pydantic(parameter: Any) -> None:
    """Return strings, missing values and defaults unchanged.

    Typer imports pydantic even for these, a quarter of the time of a command that only reads.
    """
    descriptor = getattr(parameter, "type_descriptor", None)  # older versions of Typer need no pydantic
    if descriptor is None or parameter.callback is not None:
        return
    annotation, parser = descriptor.annotation, descriptor.parameter_info.parser
    several = parameter.multiple or parameter.nargs == -1
    convert = parameter.process_value

    def process_value(ctx: Any, value: Any) -> Any:
        if value is None and not parameter.required:
            return () if several else None
        if value and annotation == list[str]:
            return list(value)
        if value and parser is not None and not several:
            return parser(value)
        return value if type(value) is annotation else convert(ctx, value)

    parameter.process_value = process_value
