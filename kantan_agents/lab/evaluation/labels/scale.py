"""The possible answers of reviewers, and their stored form."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Final

import attrs

from kantan_agents.errors import InvalidOptionError
from kantan_agents.support.arguments import shown

YES_NO: Final = "yesno"
_BOUNDS: Final = re.compile(r"(\d+)-(\d+)")
_TWO: Final = 2


@attrs.frozen
class LabelScale:
    """The answers that a reviewer may give.

    Values are stored from 0 to 1, so that labels and a judge's scores are comparable; the label retains a
    grade in its original form.

    Attributes:
        low: The lowest answer, stored as 0.0.
        high: The highest answer, stored as 1.0.
        is_yes_no: Whether these two are the only answers.
    """

    low: float
    high: float
    is_yes_no: bool = False

    @classmethod
    def of(cls, given: LabelScale | str | Sequence[float], option: str = "scale") -> LabelScale:
        """Return a scale.

        Args:
            given: ``"yesno"``, or the lowest and the highest answer: as a string, such as ``"0-1"`` or
                ``"1-5"``, or as two numbers.
            option: Its name in errors.

        Raises:
            InvalidOptionError: E75, it is something else.
        """
        if isinstance(given, LabelScale):
            return given
        if given == YES_NO:
            return cls(0.0, 1.0, is_yes_no=True)
        bounds: Sequence[Any] = ()
        if isinstance(given, str):
            match = _BOUNDS.fullmatch(given)
            bounds = [float(bound) for bound in match.groups()] if match else ()
        elif isinstance(given, (tuple, list)):
            bounds = given
        if len(bounds) == _TWO and all(map(_is_number, bounds)) and bounds[0] < bounds[1]:
            return cls(float(bounds[0]), float(bounds[1]))
        reason = (
            f"must be yesno, or the lowest and the highest answer, such as 0-1 or 1-5, not {shown(given)}"
        )
        raise InvalidOptionError(option=option, reason=reason)

    @property
    def has_yes_and_no(self) -> bool:
        """Whether yes and no are answers: 1 and 0."""
        return self.is_yes_no or (self.low, self.high) == (0.0, 1.0)

    @property
    def text(self) -> str:
        """The possible answers, in a few words."""
        if self.is_yes_no:
            return "y or n"
        bounds = f"{self.low:g} to {self.high:g}"
        return f"y, n or {bounds}" if self.has_yes_and_no else bounds

    def stored(self, given: Any) -> tuple[float, str | None]:
        """Return the stored value of an answer, from 0 to 1, and its label.

        Raises:
            InvalidOptionError: E75, the answer is not on the scale.
        """
        is_bool = isinstance(given, bool)
        allowed = self.has_yes_and_no if is_bool else _is_number(given) and self.low <= given <= self.high
        if not allowed or (self.is_yes_no and given not in (0, 1)):
            raise InvalidOptionError(option="value", reason=f"must be {self.text}, not {shown(given)}")
        if self.is_yes_no:
            return float(given), "yes" if given else "no"
        value = (float(given) - self.low) / (self.high - self.low)
        return value, None if self.has_yes_and_no else f"{given:g}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
