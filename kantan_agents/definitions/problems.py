"""What is wrong, or was put right, in one place of an agent file."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import attrs


@attrs.frozen
class Problem:
    """One thing in one place of an agent file.

    ``str(problem)`` is ``path:line: message``, the form that editors and CI systems make a link of.

    Attributes:
        path: The file; None for a text that comes from nowhere.
        line: The line in the file, from 1 on.
        message: What is the matter, in words for a person.
        severity: ``"error"`` where nothing could be loaded, else ``"warning"``.
        code: ``"E30"`` or ``"E31"`` for errors.
        is_repair: Whether the file is not valid there and was read all the same.
    """

    path: Path | None
    line: int
    message: str
    severity: Literal["error", "warning"]
    code: str | None = None
    is_repair: bool = False

    def __str__(self) -> str:
        return f"{self.path or '<text>'}:{self.line}: {self.message}"
