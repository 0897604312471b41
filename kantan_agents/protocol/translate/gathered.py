"""What is wrong with a value of one format, gathered with its paths."""

from __future__ import annotations


class Gathered:
    """Everything that is wrong, to be told together.

    Args:
        format: The format's name, for the error.
        owner: The name in ``extra`` that is this format's own.
    """

    def __init__(self, format: str, owner: str) -> None:
        self.format = format
        self.owner = owner
        self.problems: list[str] = []

    def add(self, path: str, reason: str) -> None:
        """Note what is wrong with what stands at ``path``."""
        self.problems.append(f"{path}: {reason}")
