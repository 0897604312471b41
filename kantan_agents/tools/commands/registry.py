"""Finds commands, and suggests similar names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from kantan_agents.errors import InvalidOptionError, UnknownCommandError
from kantan_agents.support.nearest import common_letters_with
from kantan_agents.tools.commands.command import Command
from kantan_agents.tools.commands.line import PREFIX, shown_name

HELP = "help"
_NEAREST = 3
_NEAR = 0.5
_LONGEST = 100


class CommandRegistry:
    """A collection of commands, found by name.

    It serves a custom command line, without an agent:

        registry = CommandRegistry([Command("weather", "Show the weather.", schema)], {"w": "weather"})
        line = split_line('/w "New York" 3')
        arguments = registry.require(line.name).read(line.rest)

    The name of a command takes precedence over ``Command.aliases``; an alias that several commands declare
    finds none of them. ``-`` and ``_`` in names are equal.

    Args:
        commands: The commands, in the order in which they are listed.
        aliases: Additional names, each with the command or alias that it refers to.
        prefix: The prefix of commands, for messages.
        allow_missing: Whether aliases may refer to commands that are not in the registry.

    Raises:
        InvalidOptionError: E75, two commands have the same name, or an alias is invalid.
    """

    def __init__(
        self,
        commands: Iterable[Command],
        aliases: Mapping[str, str] | None = None,
        *,
        prefix: str = PREFIX,
        allow_missing: bool = False,
    ) -> None:
        self.prefix = prefix
        self._commands: dict[str, Command] = {}
        problems: list[str] = []
        for command in commands:
            if command.name in self._commands:
                problems.append(f"there are two commands {command.name!r}")
            self._commands[command.name] = command
        if problems:
            raise InvalidOptionError(option="commands", reason="; ".join(problems))
        self._names = {**_brought_aliases(self._commands.values()), **self._commands}
        self._aliased = self._with_aliases(checked_aliases(aliases), allow_missing=allow_missing)

    def _with_aliases(self, aliases: Mapping[str, str], *, allow_missing: bool) -> dict[str, Command]:
        aliased: dict[str, Command] = {}
        problems = []
        for alias, target in aliases.items():
            end = target
            while end in aliases and end not in self._commands:
                end = aliases[end]
            found = self._find_by_name(end)
            if alias in self._commands:
                problems.append(f"{alias!r} is the name of a command")
            elif found is not None:
                aliased[alias] = found
            elif not allow_missing:
                problems.append(f"{alias!r} refers to {target!r}, which is not a command")
        if problems:
            raise InvalidOptionError(option="aliases", reason="; ".join(problems))
        return aliased

    def _find_by_name(self, name: str) -> Command | None:
        for spelled in (name, name.replace("-", "_"), name.replace("_", "-")):
            if spelled in self._names:
                return self._names[spelled]
        return None

    @property
    def aliases(self) -> Mapping[str, Command]:
        """The ``aliases`` of the registry, with the command of each."""
        return MappingProxyType(self._aliased)

    def find(self, name: str) -> Command | None:
        """Return the command with this name or alias; None without one."""
        return self._aliased.get(name) or self._find_by_name(name)

    def names_of(self, command: Command) -> tuple[str, ...]:
        """Return the other names by which the registry finds a command."""
        aliases = [alias for alias, target in self._aliased.items() if target is command]
        brought = [name for name in command.aliases if self._names.get(name) is command]
        return tuple(dict.fromkeys(name for name in (*aliases, *brought) if name != command.name))

    def require(self, name: str, is_shown: Callable[[Command], bool] = lambda _: True) -> Command:
        """Return the command with this name or alias.

        Args:
            name: The name, without the prefix.
            is_shown: Returns whether the error may suggest a command.

        Raises:
            UnknownCommandError: E54, no command has it; the error suggests the most similar names.
        """
        found = self.find(name)
        if found is None:
            raise unknown_command(name, self.nearest(name, is_shown), self.prefix)
        return found

    def nearest(self, name: str, is_shown: Callable[[Command], bool] = lambda _: True) -> tuple[str, ...]:
        """Return the names that are most similar to a name, the nearest first."""
        if len(name) > _LONGEST:
            return ()
        known = {HELP, *self._aliased, *self._commands}
        shown = [
            other
            for other in sorted(known)
            if (command := self._aliased.get(other) or self._commands.get(other)) is None or is_shown(command)
        ]
        found = probably_meant(_normalized(name), [_normalized(other) for other in shown], _NEAREST, _NEAR)
        return tuple(shown[place] for place in found)

    def __iter__(self) -> Iterator[Command]:
        return iter(self._commands.values())

    def __len__(self) -> int:
        return len(self._commands)

    def __repr__(self) -> str:
        return f"CommandRegistry({', '.join(self._commands)})"


def checked_aliases(aliases: Any) -> dict[str, str]:
    """Return a copy of ``aliases``, {} for None; E75 for invalid names or a circle."""
    if aliases is None:
        return {}
    if not isinstance(aliases, Mapping):
        raise InvalidOptionError(option="aliases", reason=f"must be a dict of names, not {aliases!r}")
    problems = [
        f"{name!r} is not a valid name"
        for pair in aliases.items()
        for name in pair
        if not isinstance(name, str) or not name or any(sign.isspace() or sign == "\0" for sign in name)
    ]
    if HELP in aliases:
        problems.append(f"{HELP!r} always lists the commands")
    if not problems:
        problems = [
            f"{alias!r} refers to itself in the end" for alias in aliases if _is_circular(alias, aliases)
        ]
    if problems:
        raise InvalidOptionError(option="aliases", reason="; ".join(problems))
    return dict(aliases)


def unknown_command(name: str, nearest: tuple[str, ...], prefix: str) -> UnknownCommandError:
    """Return the error for a command that does not exist."""
    return UnknownCommandError(name=shown_name(name), nearest=nearest, prefix=prefix)


def _is_circular(alias: str, aliases: Mapping[str, str]) -> bool:
    seen, at = set[str](), alias
    while at in aliases and at not in seen:
        seen.add(at)
        at = aliases[at]
    return at in seen


def _brought_aliases(commands: Iterable[Command]) -> dict[str, Command]:
    brought: dict[str, list[Command]] = {}
    for command in commands:
        for name in command.aliases:
            brought.setdefault(name, []).append(command)
    return {name: owners[0] for name, owners in brought.items() if all(one is owners[0] for one in owners)}


def _normalized(name: str) -> str:
    return name.lower().replace("-", "_")


def probably_meant(typed: str, names: Sequence[str], limit: int, least: float) -> list[int]:
    """Return indexes of names, best first; ``least`` is the minimum of 1 - edits / letters."""
    count_common = common_letters_with(typed)
    # No distance is smaller than the number of letters not in common, which is quick to count.
    longest = [max(len(typed), len(name)) for name in names]
    bounds = [_similarity(most, most - count_common(name)) for most, name in zip(longest, names, strict=True)]
    possible = (place for place, bound in enumerate(bounds) if bound >= least)
    likely = sorted(possible, key=lambda place: -bounds[place])
    best: list[tuple[float, int]] = []
    for place in likely:
        if len(best) == limit and bounds[place] < -best[-1][0]:
            break
        similarity = _similarity(longest[place], edit_distance(typed, names[place]))
        if similarity >= least:
            best = sorted([*best, (-similarity, place)])[:limit]
    return [place for _, place in best]


def _similarity(longest: int, edits: int) -> float:
    return 1 - edits / max(longest, 1)


def edit_distance(one: str, other: str) -> int:
    """Count edits: Lowrance and Wagner, "An extension of the string-to-string correction problem", 1975."""
    border = len(one) + len(other)  # no path crosses it
    rows: list[list[int]] = [[border] * (len(other) + 2), [border, *range(len(other) + 1)]]
    last_row_of: dict[str, int] = {}
    for row, letter in enumerate(one, start=1):
        line, above, last_match = [border, row], rows[row], 0
        for column, wanted in enumerate(other, start=1):
            from_row, from_column = last_row_of.get(wanted, 0), last_match
            if letter == wanted:
                last_match = column
            replaced = above[column] + (letter != wanted)
            swapped = rows[from_row][from_column] + (row - from_row) + (column - from_column) - 1
            line.append(min(replaced, line[column] + 1, above[column + 1] + 1, swapped))
        last_row_of[letter] = row
        rows.append(line)
    return rows[-1][-1]
