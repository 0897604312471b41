"""Rubrics: a score with comments (spec 5)."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Final

from pydantic import BaseModel, Field, create_model
from typing_extensions import Self

from kantan_agents.errors import InvalidOptionError
from kantan_agents.models.structured import as_dict
from kantan_agents.support.arguments import checked_scale

_FIELDS = frozenset({"score", "comments"})
_BOUNDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_SCALED: Final = "__kantan_scaled__"
STANDARD_SCALE: Final = (0.0, 1.0)
"""The scale of judges with the standard instructions."""


class Rubric(BaseModel):
    """The output of a judge. Subclass it to add fields.

    Attributes:
        score: The verdict; the judge's instructions define the scale.
        comments: The reasons, one per item.
    """

    score: Annotated[float, Field(strict=True, allow_inf_nan=False)]
    comments: list[str]

    @classmethod
    def between(cls, low: float, high: float) -> type[Self]:
        """Return this rubric with a score from ``low`` to ``high``.

            critic = Agent("critic", "Score the answer from 0 to 10.", output_type=RUBRIC.between(0, 10))

        The model gets the bounds in the schema. A reply outside of them does not fit: the model must correct
        it, or the run fails with E40, so no such score is recorded.

        Args:
            low: The lowest score.
            high: The highest score.

        Raises:
            InvalidOptionError: E75, ``low`` and ``high`` are not finite or not in order, or a subclass's
                score has bounds already or is not a number.
        """
        bounded: type[Self] = with_scale(cls, checked_scale("between", (low, high)))
        return bounded


RUBRIC = Rubric
"""``Agent(..., output_type=RUBRIC)`` makes a judge whose verdict is stored with the run (spec 5.2)."""


def with_scale(output_type: Any, scale: tuple[float, float]) -> Any:
    """Return an output type with its score on a scale.

    E75 unless it is a pydantic model whose score is a number without bounds.
    """
    is_model = isinstance(output_type, type) and issubclass(output_type, BaseModel)
    score = output_type.model_json_schema().get("properties", {}).get("score", {}) if is_model else {}
    is_number = score.get("type") == "number"
    is_int = score.get("type") == "integer" and all(map(float.is_integer, scale))
    if not (is_number or is_int) or any(bound in score for bound in _BOUNDS):
        reason = (
            "is for a pydantic model whose score is a number without bounds, or an int on a scale of whole "
            "numbers; in other types, declare "
            f"score: Annotated[float, Field(ge={scale[0]:g}, le={scale[1]:g})]"
        )
        raise InvalidOptionError(option="scale", reason=reason)
    return _bounded(output_type, scale)


@lru_cache(maxsize=256)
def _bounded(rubric: type[BaseModel], scale: tuple[float, float]) -> type[BaseModel]:
    field = rubric.model_fields["score"]
    low, high = [int(end) if end.is_integer() else end for end in scale]
    bounds = Field(strict=True, allow_inf_nan=False, ge=low, le=high)
    kind: Any = Annotated[field.annotation, bounds]
    made: type[BaseModel] = create_model(
        rubric.__name__,
        __base__=rubric,
        __doc__=rubric.__doc__,
        __module__=rubric.__module__,
        score=(kind, field),
    )
    setattr(made, _SCALED, (rubric, scale))

    def reduce(value: BaseModel, protocol: Any) -> Any:
        if type(value) is not made:
            return super(made, value).__reduce_ex__(protocol)
        return _empty, (rubric, scale), value.__getstate__()

    made.__reduce_ex__ = reduce  # type: ignore[method-assign,assignment]  # pickle does not find it by its name
    return made


def _empty(rubric: type[BaseModel], scale: tuple[float, float]) -> BaseModel:
    made = _bounded(rubric, scale)
    return made.__new__(made)


def scale_of(output_type: Any) -> tuple[Any, tuple[float, float] | None]:
    """Undo ``with_scale``: return type and scale."""
    # Not a base class's: a subclass may have another score.
    own = vars(output_type).get(_SCALED) if isinstance(output_type, type) else None
    return (output_type, None) if own is None else own


def rubric_of(output: Any, output_type: Any = None) -> dict[str, Any] | None:
    """Return ``output`` as a rubric dict if its type is a rubric, else None.

    Rubrics are ``RUBRIC`` and subclasses; a pydantic model, dataclass, attrs class or TypedDict (as declared
    in ``output_type``) with ``score`` and ``comments``; and results of ``judge``.
    """
    fields = as_dict(output, json=True)
    if fields is None:
        return None
    if isinstance(output, dict) and not getattr(output_type, "__annotations__", {}).keys() >= _FIELDS:
        inner = output.get("rubric") if output.get("output_kind") == "judge" else None
        return inner if isinstance(inner, dict) else None
    return fields if fields.keys() >= _FIELDS else None


def judge(score: float, comments: list[str]) -> dict[str, Any]:
    """Return a verdict in kantan-llm's shape of a rubric (spec 5, supplement).

    Use it when code gives the verdict, rather than a judge agent with ``output_type=RUBRIC``.

    Args:
        score: The verdict.
        comments: The reasons.

    Returns:
        ``{"output_kind": "judge", "rubric": {"score": score, "comments": comments}}``
    """
    return {"output_kind": "judge", "rubric": {"score": score, "comments": comments}}
