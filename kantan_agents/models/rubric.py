"""Rubrics: a score with comments, as a structured output or as a dict (spec 5)."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from kantan_agents.models.structured import as_dict

_FIELDS = frozenset({"score", "comments"})


class Rubric(BaseModel):
    """The output of a judge. Subclass it to add fields.

    Attributes:
        score: The verdict; the judge's instructions define the scale.
        comments: The reasons, one per item.
    """

    score: float
    comments: list[str]


RUBRIC = Rubric
"""``Agent(..., output_type=RUBRIC)`` makes a judge whose verdict is stored with the run (spec 5.2)."""


def rubric_of(output: Any, output_type: Any = None) -> dict[str, Any] | None:
    """Return ``output`` as a rubric dict if its type is a rubric's, else None.

    A rubric is recognised by its type, never by a name: ``RUBRIC`` or a subclass, any pydantic model,
    dataclass, attrs class or TypedDict with the fields ``score`` and ``comments``, or what ``judge``
    returns.

    Args:
        output: The SDK's ``final_output``.
        output_type: The type the agent declared; distinguishes a TypedDict from any other dict.
    """
    fields = as_dict(output, json=True)
    if fields is None:
        return None
    if isinstance(output, dict) and not getattr(output_type, "__annotations__", {}).keys() >= _FIELDS:
        inner = output.get("rubric") if output.get("output_kind") == "judge" else None
        return inner if isinstance(inner, dict) else None
    return fields if fields.keys() >= _FIELDS else None


def judge(score: float, comments: list[str]) -> dict[str, Any]:
    """Return a verdict in the shape kantan-llm stores as a rubric (spec 5, supplement).

    Usually a judge agent with ``output_type=RUBRIC`` gives the verdict. Use this function when other code
    does.

    Args:
        score: The verdict.
        comments: The reasons.

    Returns:
        ``{"output_kind": "judge", "rubric": {"score": score, "comments": comments}}``
    """
    return {"output_kind": "judge", "rubric": {"score": score, "comments": comments}}
