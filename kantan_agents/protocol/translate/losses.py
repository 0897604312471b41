"""What a format cannot carry: gathered with its paths, told together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kantan_agents.errors import UntranslatableError
from kantan_agents.protocol.json_data import plain
from kantan_agents.protocol.translate.gathered import Gathered

OWNERS = ("openai", "openai_responses", "anthropic", "gemini")
"""Under these names ``extra`` holds what a format says and the protocol has no field for."""


class Losses(Gathered):
    """What would be lost of a value in one format."""

    def check(self) -> None:
        """Raise if there was anything.

        Raises:
            UntranslatableError: E52, with all of it.
        """
        if self.problems:
            raise UntranslatableError(format=self.format, problems=self.problems)

    def own(self, extra: Mapping[str, Any], path: str, *parts: str) -> dict[str, Any]:
        """Return what ``extra`` holds for this format, a mapping with some of ``parts``.

        What it holds for the other formats is theirs, and left out. Any other field would be lost.
        """
        for name in extra:
            if name not in OWNERS:
                self.add(f"{path}{name}", "is a field the format has no place for")
        own = extra.get(self.owner)
        if own is None:
            return {}
        if not isinstance(own, Mapping):
            self.add(f"{path}extra.{self.owner}", "must be an object")
            return {}
        for name in own:
            if name not in parts:
                self.add(f"{path}extra.{self.owner}.{name}", "has no place here")
        return {name: plain(part) for name, part in own.items() if name in parts}

    def with_fields(self, written: dict[str, Any], own: Mapping[str, Any], path: str) -> dict[str, Any]:
        """Return a wire object with the unknown fields of ``own`` put back."""
        fields = own.get("fields", {})
        if not isinstance(fields, Mapping):
            self.add(f"{path}extra.{self.owner}.fields", "must be an object")
            return written
        for name in fields:
            if name in written:
                self.add(
                    f"{path}extra.{self.owner}.fields.{name}", "stands where the value itself is written"
                )
        return {**fields, **written}

    def blocks(self, own: Mapping[str, Any], name: str, path: str) -> list[Any]:
        """Return the wire blocks of ``own`` that stand before or after a segment."""
        found = own.get(name, [])
        if isinstance(found, list) and all(isinstance(block, Mapping) for block in found):
            return found
        self.add(f"{path}extra.{self.owner}.{name}", "must be a list of objects")
        return []

    def name(self, name: str, pattern: re.Pattern[str], path: str) -> str:
        """Return the name of a tool, noting if the format does not allow it."""
        if not pattern.fullmatch(name):
            self.add(path, f"is {name[:80]!r}, but a tool's name must match {pattern.pattern}")
        return name
