"""``TokenLimits``: how long a request may be, and what must stay in it."""

from __future__ import annotations

import attrs

_SHARE_OF_SUMMARY = 8
_LEAST_SUMMARY, _MOST_SUMMARY = 64, 1_500


@attrs.frozen
class TokenLimits:
    """The limits of the requests to one model.

    Attributes:
        most: The most tokens of a request.
        begin: Tokens from which a request is shortened.
        target: Tokens that a shortened request has at most, if that is possible.
        keep_turns: How many of the newest turns stay.
        keep_first: Whether the first turn of the user stays.
    """

    most: int
    begin: int
    target: int
    keep_turns: int
    keep_first: bool

    @property
    def summary(self) -> int:
        """The most tokens of a summary."""
        return min(max(self.target // _SHARE_OF_SUMMARY, _LEAST_SUMMARY), _MOST_SUMMARY)
