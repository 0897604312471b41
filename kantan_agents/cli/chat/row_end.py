"""Tracks the column in which output ends."""

from __future__ import annotations

from typing import Final

from rich.cells import get_character_cell_size

_EMOJI: Final = 0x1F000
"""From here on, terminals differ in the width of characters, alone and joined."""


class RowEnd:
    """Follows output that starts at the left edge.

    After a character in the last column, terminals wrap only with the next one, and not if the cursor moved
    in between: it must not leave the output there.
    """

    def __init__(self) -> None:
        self._column: int | None = 0
        self._width = 0

    def follow(self, text: str, width: int) -> None:
        """Follow a piece of output."""
        _, newline, last = text.rpartition("\n")
        if newline:
            self._column = 0
        elif self._column and width != self._width:
            self._column = None
        self._width = width
        for character in last:
            cells = get_character_cell_size(character)
            if self._column is None or not cells or ord(character) >= _EMOJI:
                self._column = None
                return
            fits = self._column + cells <= width
            self._column = self._column + cells if fits else cells

    def may_leave(self, width: int) -> bool:
        """Return whether the cursor can leave and return."""
        return self._column is not None and self._column < self._width == width
