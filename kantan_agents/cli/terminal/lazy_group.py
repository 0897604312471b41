"""A group that imports commands only when called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

import typer
from typer.core import TyperCommand

from kantan_agents.cli.terminal.new_app import Group, new_app


class CommandHome(NamedTuple):
    """``MODULE:NAME`` of a command, and its docstring's first paragraph."""

    place: str
    summary: str


class LazyGroup(Group):
    """A group whose commands, by name in ``homes``, are imported on call."""

    homes: ClassVar[Mapping[str, CommandHome]]

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands: Any = _LazyCommands(self.homes)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        del ctx
        return list(self.homes)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command for lists, without parameters, or None."""
        del ctx
        home = self.homes.get(cmd_name)
        return TyperCommand(cmd_name, help=home.summary, rich_markup_mode="rich") if home else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the called command's name, the command, and its arguments."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and self.commands[name], rest


class _LazyCommands(Mapping[str, Any]):
    def __init__(self, homes: Mapping[str, CommandHome]) -> None:
        self._homes = homes
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = _make(name, self._homes[name])
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)


def _make(name: str, home: CommandHome) -> Any:
    module, _, attribute = home.place.partition(":")
    found = getattr(import_module(module), attribute)
    if isinstance(found, typer.Typer):
        made: Any = typer.main.get_group(found)
        made.name, made.help = name, home.summary
        return made
    app = new_app(add_completion=False)
    app.command(name)(found)
    return typer.main.get_command(app)
