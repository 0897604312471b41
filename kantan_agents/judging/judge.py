"""The small helper of spec 5 for a verdict that is already known."""

from __future__ import annotations

from typing import Any


def judge(score: float, comments: list[str]) -> dict[str, Any]:
    """Return a verdict in the shape kantan-llm stores as a rubric (spec 5, supplement).

    The usual way to a verdict is ``output_type=RUBRIC``; this is for code that has one by other means.

    Args:
        score: The verdict.
        comments: The reasons.

    Returns:
        ``{"output_kind": "judge", "rubric": {"score": score, "comments": comments}}``
    """
    return {"output_kind": "judge", "rubric": {"score": score, "comments": comments}}
