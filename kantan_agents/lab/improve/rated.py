"""``Rated``: what became of one recorded run with a version of the prompt, its score, and what was wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import attrs
import msgspec
from typing_extensions import Self

from kantan_agents.support.secrets import mask
from kantan_agents.traces.capture.calls import JSONValue

RatedStatus = Literal["recorded", "same", "wording", "changed", "diverged", "failed", "not run"]


@attrs.frozen
class Rated:
    """One run and its score.

    Attributes:
        case_id: Id of the recorded run.
        value: The score; 0 for a run that failed, diverged or was not made.
        status: As for ``RunOutcome``; ``"recorded"`` for the recorded run itself, and ``"not run"`` for a
            candidate that was refused.
        feedback: What was wrong, for the reflection model; one text for each remark.
        comment: The judge's comment.
        refused: Names of the tools whose calls were refused, and not in the recorded run.
        is_invalid: Whether the output did not fit its schema.
        output: The final output; None if there is none.
        error: The error that ended the run.
        trace_id: Id of the trace of the run; None if it was not recorded.
        input_tokens: Input tokens of its model calls.
        output_tokens: Output tokens of its model calls.
        seconds: Time spent in its model calls.
        model_calls: Number of its model calls.
        cost: Price of its tokens; None without prices.
        judge_tokens: Tokens of the judge.
        judge_cost: Their price; None without prices.
    """

    case_id: str
    value: float
    status: RatedStatus
    feedback: tuple[str, ...] = ()
    comment: str | None = None
    refused: tuple[str, ...] = ()
    is_invalid: bool = False
    output: JSONValue = None
    error: str | None = None
    trace_id: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    model_calls: int = 0
    cost: float | None = None
    judge_tokens: int = 0
    judge_cost: float | None = None

    @property
    def tokens(self) -> int:
        """Input and output tokens of the run together."""
        return self.input_tokens + self.output_tokens

    @property
    def has_ended(self) -> bool:
        """Whether the run ended by itself, so that its use can be compared."""
        return self.status in ("same", "wording", "changed") and self.error is None

    def withheld(self) -> Self:
        """Return it without the texts of the run: for a database that may not have them either."""
        error = None if self.error is None else self.error.partition(":")[0]
        return attrs.evolve(self, output=None, comment=None, error=error, feedback=())

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON data; ``from_dict`` reads it back."""
        return {**attrs.asdict(self), "feedback": list(self.feedback), "refused": list(self.refused)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the value that ``to_dict`` has made data of.

        Raises:
            msgspec.ValidationError: It is not such data.
        """
        return msgspec.convert(data, cls)


def mean(values: Sequence[float]) -> float:
    """Return the mean of at least one value."""
    return sum(values) / len(values)


def feedback_of(rated: Rated, perfect: float) -> tuple[str, ...]:
    """Return what was wrong with a run, the most important first: refused calls, errors, the judge's comment.

    Args:
        rated: The run.
        perfect: The best score.
    """
    found = [
        f"The call of the tool {name} was refused by the tool rules. It must not be made."
        for name in rated.refused
    ]
    if rated.is_invalid:
        found.append(f"The output did not fit its schema: {rated.error}")
    elif rated.status == "diverged":
        found.append(
            f"The run made a tool call that the recorded run had not made, and ended there: {rated.error}"
        )
    elif rated.error is not None:
        found.append(f"The run failed: {rated.error}")
    else:
        found.append(f"Score {rated.value:g} of {perfect:g}.")
    if rated.comment:
        found.append(rated.comment)
    return tuple(found)


def masked(value: Any) -> Any:
    """Return a copy of JSON data with the secrets in its texts masked."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, Mapping):
        return {mask(str(key)): masked(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [masked(inner) for inner in value]
    return value
