"""Everything that is wrong with one command, together."""

from __future__ import annotations

_KEPT = 20


class Problems:
    """A list of mistakes that knows which parameters it is about.

    Attributes:
        about: Names of parameters of which something has been said.
    """

    def __init__(self) -> None:
        self.about: set[str] = set()
        self._texts: list[str] = []
        self._count = 0

    def add(self, text: str, about: str | None = None) -> None:
        """Add a mistake.

        Args:
            text: What is wrong.
            about: The parameter, or a path that begins with it.
        """
        self._count += 1
        if about is not None:
            self.about.add(about)
        if len(self._texts) < _KEPT:
            self._texts.append(text if about is None else f"{about}: {text}")

    def texts(self) -> list[str]:
        """Return the mistakes; of very many the first ones, and how many more there are."""
        left = self._count - len(self._texts)
        return [*self._texts, f"and {left} more"] if left else list(self._texts)

    def __bool__(self) -> bool:
        return self._count > 0
