"""The output types of the ready-made judges. The model decides yes or no, and code computes the score.

Both types are rubrics, so ``store.failed()`` and kantan-llm's ``find_failed_judges`` find the verdicts. The
model sees the docstrings of the classes, in the JSON schema.
"""

from __future__ import annotations

from pydantic import BaseModel, Field, computed_field


class Decision(BaseModel):
    """Yes or no, with a reason.

    Attributes:
        reason: Why. It comes first, so that the model has written it before it decides.
        passes: The decision.
    """

    reason: str = Field(description="one or two sentences")
    passes: bool

    @computed_field  # type: ignore[prop-decorator]  # the order that pydantic documents
    @property
    def score(self) -> float:
        """1 if it passes, else 0."""
        return float(self.passes)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def comments(self) -> list[str]:
        """The reason."""
        return [self.reason]


class CheckedPart(BaseModel):
    """One part of a text, with a decision.

    Attributes:
        part: The part, quoted or in short.
        reason: Why.
        holds: The decision.
    """

    part: str = Field(description="the part in short")
    reason: str = Field(description="one sentence")
    holds: bool


class Parts(BaseModel):
    """A decision for each part of a text.

    Attributes:
        parts: The parts, in their order.
    """

    parts: list[CheckedPart]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def score(self) -> float | None:
        """The share of the parts that hold; None without any."""
        return sum(one.holds for one in self.parts) / len(self.parts) if self.parts else None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def comments(self) -> list[str]:
        """The parts that do not hold, each with its reason."""
        return [f"{one.part}: {one.reason}" for one in self.parts if not one.holds]
