"""Creates the Typer application of a command group, with the same help for all groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


class _Command(TyperCommand):
    def get_params(self, ctx: Any) -> Any:
        return _without_flag_types(super().get_params(ctx))


class _Group(TyperGroup):
    def get_params(self, ctx: Any) -> Any:
        return _without_flag_types(super().get_params(ctx))


class _App(typer.Typer):
    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        return super().command(name, **{"cls": _Command, **options})


def new_app(**options: Any) -> typer.Typer:
    """Return an application whose help shows flags as they are written: ``--json``, not ``--json <bool>``."""
    return _App(cls=_Group, rich_markup_mode="rich", **options)


def _without_flag_types(parameters: Any) -> Any:
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters
