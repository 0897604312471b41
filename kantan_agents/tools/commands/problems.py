"""``CommandProblems``: collect everything wrong with one command."""

from __future__ import annotations

_MAX_SHOWN = 20


class CommandProblems:
    """Collects problems and the parameters that have one.

    Attributes:
        about: Names of the parameters that have a problem.
    """

    def __init__(self) -> None:
        self.about: set[str] = set()
        self._texts: list[str] = []
        self._count = 0

    def add(self, text: str, about: str | None = None) -> None:
        """Add a problem.

        Args:
            text: What is wrong.
            about: The parameter, or the path of a value in it; None if the problem concerns no parameter.
        """
        self._count += 1
        if about is not None:
            self.about.add(about)
        if len(self._texts) < _MAX_SHOWN:
            self._texts.append(text if about is None else f"{about}: {text}")

    def texts(self) -> list[str]:
        """Return the problems: the first 20, then the number of the others."""
        left = self._count - len(self._texts)
        return [*self._texts, f"and {left} more"] if left else list(self._texts)

    def __bool__(self) -> bool:
        return self._count > 0
