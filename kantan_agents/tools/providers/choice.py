"""The installed tool providers. Loads none."""

from __future__ import annotations

import importlib.metadata
import inspect
import os
from collections.abc import Iterable
from importlib.metadata import EntryPoint
from typing import Any

import attrs

from kantan_agents.errors import InvalidOptionError

GROUP = "kantan_agents.tools"
VARIABLE = "KANTAN_AGENTS_TOOL_PROVIDERS"


@attrs.frozen
class Declaration:
    """A provider's entry point; ``distribution`` is None if its metadata cannot be read."""

    name: str
    distribution: str | None
    version: str | None

    @classmethod
    def of(cls, entry: EntryPoint) -> Declaration:
        """Damaged metadata does not raise."""
        try:
            distribution, version = (entry.dist.name, entry.dist.version) if entry.dist else (None, None)
        except Exception:  # noqa: BLE001 - whatever the parser of a damaged file raises
            distribution = version = None
        return cls(getattr(entry, "name", "unnamed"), distribution, version)  # a test's own may lack a name

    def __str__(self) -> str:
        if self.distribution is None:
            return "an unknown distribution"
        return f"{self.distribution} {self.version}"


def declared_providers() -> list[tuple[Declaration, EntryPoint]]:
    """Return ordered entry points, without loading them."""
    declared = [(Declaration.of(entry), entry) for entry in _entries()]
    return sorted(declared, key=lambda pair: (pair[0].name, str(pair[0])))


def entry_points_function() -> Any:
    """Return the standard library's function, or a test's."""
    return importlib.metadata.entry_points


def _entries() -> Iterable[EntryPoint]:
    """A test's replacement may take no arguments, because 0.1.x passed none."""
    listed = entry_points_function()
    try:
        inspect.signature(listed).bind(group=GROUP)
    except TypeError:
        every = listed()
        selected: Iterable[EntryPoint] = (
            every.select(group=GROUP) if hasattr(every, "select") else every.get(GROUP, ())
        )
        return selected
    entries: Iterable[EntryPoint] = listed(group=GROUP)
    return entries


class _ProcessChoice:
    """The names that ``use_tool_providers`` permits; None for no limit."""

    permitted: frozenset[str] | None = None


def use_tool_providers(*names: str | None) -> None:
    """Limit the tool providers that this process may use.

    The limit applies to agents created from now on; existing agents are unchanged. Call it before the first
    agent, so that no other provider is loaded at all. An agent's ``tool_providers`` can only choose among the
    permitted ones. The environment variable ``KANTAN_AGENTS_TOOL_PROVIDERS`` (``none``, ``all`` or names
    separated by commas) limits this call, too.

        use_tool_providers("acme")  # only this one
        use_tool_providers()  # none
        use_tool_providers(None)  # no limit except the environment variable

    Names of providers that are not installed are logged once, as a warning.

    Args:
        *names: Names of entry points of the group ``kantan_agents.tools``, or a single None.

    Raises:
        InvalidOptionError: E75, a name is not a str or is empty, or None is combined with names. An empty or
            unclear environment variable is E75 when an agent is created.
    """
    if names == (None,):
        _ProcessChoice.permitted = None
        return
    for name in names:
        if not isinstance(name, str) or not name:
            reason = f"must be names of tool providers, or None alone, not {name!r}"
            raise InvalidOptionError(option="use_tool_providers", reason=reason)
    _ProcessChoice.permitted = frozenset(name for name in names if name)


def permitted_providers() -> frozenset[str] | None:
    """Return None for all; E75 if the environment variable is invalid."""
    value = os.environ.get(VARIABLE)
    if value is None:
        return _ProcessChoice.permitted
    by_variable = _names_in(value)
    if by_variable is None or _ProcessChoice.permitted is None:
        return _ProcessChoice.permitted if by_variable is None else by_variable
    return by_variable & _ProcessChoice.permitted


def _names_in(value: str) -> frozenset[str] | None:
    names = [name.strip() for name in value.split(",")]
    if names == ["all"]:
        return None
    if names == ["none"]:
        return frozenset()
    if not all(names) or {"all", "none"} & {*names}:
        reason = f'must be "none", "all", or names of tool providers separated by commas, not {value!r}'
        raise InvalidOptionError(option=VARIABLE, reason=reason)
    return frozenset(names)
