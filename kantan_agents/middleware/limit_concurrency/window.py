"""``Window``: how many calls a provider can take at once, learned from its rate limits.

Additive increase and multiplicative decrease (Chiu and Jain, 1989): clients that share a provider arrive at
fair shares of what it can take.
"""

from __future__ import annotations


class Window:
    """A number of places from 1 to ``most``. It is not thread-safe.

    Args:
        most: The largest number, which is also the first one.
        adapts: Whether it changes at all.

    Attributes:
        round: Counts the decreases. A call that began before the last one says nothing about the new size.
    """

    def __init__(self, most: int, *, adapts: bool) -> None:
        self._most = most
        self._adapts = adapts
        self._size = float(most)
        self.round = 0

    @property
    def size(self) -> int:
        """How many places there are."""
        return int(self._size)

    def learn(self, begun_in: int, *, is_overloaded: bool) -> None:
        """Learn from a call that has ended.

        Args:
            begun_in: The round in which it began.
            is_overloaded: Whether the provider has refused it as one too many.
        """
        if not self._adapts:
            return
        if not is_overloaded:
            # One more place after as many answers as there are places.
            self._size = min(self._size + 1 / self._size, float(self._most))
        elif begun_in == self.round:
            self._size = max(self._size / 2, 1.0)
            self.round += 1
