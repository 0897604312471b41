"""``ChosenFiles``: which files ``Grep`` searches."""

from __future__ import annotations

from itertools import accumulate

import attrs
from typing_extensions import Self

from kantan_agents.toolkit.files.globs import Glob, compiled_glob

_NOT = "!"


@attrs.frozen
class ChosenFiles:
    """The files that a glob pattern matches, or all others.

    Attributes:
        glob: The pattern.
        are_others: Whether the files are searched that it does not match, neither themselves nor by a folder
            that they are in.
    """

    glob: Glob
    are_others: bool

    @classmethod
    def of(cls, pattern: str) -> Self:
        """Return the files for the ``glob`` of a call, which leaves files out if it begins with ``!``.

        Raises:
            InvalidPatternError: E164, it is not a pattern.
        """
        text = pattern.removeprefix(_NOT)
        return cls(compiled_glob(text, any_depth=True), text != pattern)

    def has(self, path: str) -> bool:
        """Return whether to search a file, by its path relative to the folder that is searched."""
        if not self.are_others:
            return self.glob.matches(path)
        return not any(map(self.glob.matches, accumulate(path.split("/"), "{}/{}".format)))
