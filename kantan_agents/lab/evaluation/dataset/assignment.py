"""Assigns cases to parts by hash, so that adding cases moves no other."""

from __future__ import annotations

import math
from typing import Final, Literal

import attrs

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation.dataset.case import Case
from kantan_agents.support.arguments import checked_number, shown
from kantan_agents.traces.capture.canonical import canonical, digest

Part = Literal["train", "validation", "test"]

_SPACE: Final = 2.0**64
_TOLERANCE: Final = 1e-9


@attrs.frozen
class Fractions:
    """The sizes of the parts of a split."""

    train: float
    validation: float
    test: float

    def __attrs_post_init__(self) -> None:
        parts = {"train": self.train, "validation": self.validation, "test": self.test}
        total = sum(checked_number(name, value) for name, value in parts.items())
        if not math.isclose(total, 1, abs_tol=_TOLERANCE):
            reason = f"with train={self.train} and validation={self.validation}, the sum is {total:g}, not 1"
            raise InvalidOptionError(option="test", reason=reason)


def part_of(case: Case, fractions: Fractions, seed: int) -> Part:
    """Return the part of a case, which depends only on the seed and the conversation, or else the input."""
    key = ["conversation", case.conversation] if case.conversation is not None else ["input", case.input]
    place = int.from_bytes(digest(canonical([seed, *key]))[:8], "big") / _SPACE
    if place < fractions.train:
        return "train"
    # Otherwise a rounding error in the sum could put a case into an empty part.
    if fractions.test == 0 or place < fractions.train + fractions.validation:
        return "validation" if fractions.validation else "train"
    return "test"


def checked_seed(seed: object) -> int:
    """Return a seed; E75 unless it is an int."""
    if isinstance(seed, int) and not isinstance(seed, bool):
        return seed
    raise InvalidOptionError(option="seed", reason=f"must be an int, not {shown(seed)}")
