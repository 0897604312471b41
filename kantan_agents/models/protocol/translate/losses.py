"""``Losses``: collects problems for one error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kantan_agents.errors import UntranslatableError
from kantan_agents.models.protocol.json_data import plain

OWNERS = ("openai", "openai_responses", "anthropic", "gemini")
"""Keys of ``extra``, one for each format."""


class TranslationProblems:
    """Collects problems with their paths."""

    def __init__(self, format: str, owner: str) -> None:
        self.format = format
        self.owner = owner
        self.problems: list[str] = []

    def add(self, path: str, reason: str) -> None:
        """Add a problem."""
        self.problems.append(f"{path}: {reason}")


class Losses(TranslationProblems):
    """Collects losses of a translation."""

    def check(self) -> None:
        """Raise E52 if there are losses."""
        if self.problems:
            raise UntranslatableError(format=self.format, problems=self.problems)

    def format_extra(self, extra: Mapping[str, Any], path: str, *parts: str) -> dict[str, Any]:
        """Return this format's data in ``extra`` under the keys ``parts``.

        Any key that is not a format's is a loss.
        """
        for name in extra:
            if name not in OWNERS:
                self.add(f"{path}{name}", "is a field that the format cannot hold")
        own = extra.get(self.owner)
        if own is None:
            return {}
        if not isinstance(own, Mapping):
            self.add(f"{path}extra.{self.owner}", "must be an object")
            return {}
        for name in own:
            if name not in parts:
                self.add(f"{path}extra.{self.owner}.{name}", "is not allowed here")
        return {name: plain(part) for name, part in own.items() if name in parts}

    def with_fields(self, written: dict[str, Any], own: Mapping[str, Any], path: str) -> dict[str, Any]:
        """Add stored fields to a wire object."""
        fields = own.get("fields", {})
        if not isinstance(fields, Mapping):
            self.add(f"{path}extra.{self.owner}.fields", "must be an object")
            return written
        for name in fields:
            if name in written:
                self.add(f"{path}extra.{self.owner}.fields.{name}", "is a field that the value itself sets")
        return {**fields, **written}

    def blocks(self, own: Mapping[str, Any], name: str, path: str) -> list[Any]:
        """Return stored wire blocks."""
        found = own.get(name, [])
        if isinstance(found, list) and all(isinstance(block, Mapping) for block in found):
            return found
        self.add(f"{path}extra.{self.owner}.{name}", "must be a list of objects")
        return []

    def name(self, name: str, pattern: re.Pattern[str], path: str) -> str:
        """Return a tool's name; an invalid one is a loss."""
        if not pattern.fullmatch(name):
            self.add(path, f"is {name[:80]!r}, but a tool's name must match {pattern.pattern}")
        return name
